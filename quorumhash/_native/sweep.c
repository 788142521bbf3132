/* What follows the products of a sweep, in one pass over memory: a row stays in the nearest cache until it is done.
 *
 * Plain loops, of which the compiler makes vectors. Sums are made in the same order on every processor, largest numbers
 * are kept by column, and setup.py forbids fused operations: every kernel gives the same bits.
 */
#include "hamming.h"

#include <math.h>
#include <string.h>

#define QH_LANES 8 /* parts of a sum, side by side: an AVX-512 vector */

#if !defined(__GNUC__) && !(defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define restrict /* only speed depends on it */
#endif

/* view - Khat, and with the dual what the view moves Khat by. */
#define QH_MOVE(name, number)                                                                         \
    QH_INLINE void name(size_t n, const number *restrict view, const double *restrict kernel,         \
                        const double *restrict dual, double *restrict errors, double *restrict moves) \
    {                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                              \
            const double error = (double)view[i] - kernel[i];                                         \
            errors[i] = error;                                                                        \
            moves[i] = error + dual[i];                                                               \
        }                                                                                             \
    }

QH_MOVE(move_single, float)
QH_MOVE(move_double, double)

/* Of n numbers, and of the zeros behind them up to a whole number of lanes. */
QH_INLINE double norm_of(size_t n, const double *row)
{
    double parts[QH_LANES] = {0};
    for (size_t i = 0; i < n; i += QH_LANES)
        for (size_t lane = 0; lane < QH_LANES; lane++) parts[lane] += row[i + lane] * row[i + lane];
    return sqrt(((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7])));
}

QH_INLINE void add_sizes(size_t n, const double *restrict errors, double *restrict sizes)
{
    for (size_t i = 0; i < n; i++) sizes[i] += fabs(errors[i]);
}

QH_INLINE void add_row(size_t n, double kept, const double *restrict moves, double *restrict total)
{
    for (size_t i = 0; i < n; i++) total[i] += moves[i] * kept;
}

/* Entries less their error, in place. */
QH_INLINE void add_entries(size_t n, double threshold, double *restrict moves, double *restrict total)
{
    for (size_t i = 0; i < n; i++) {
        const double low = moves[i] < -threshold ? -threshold : moves[i], move = low > threshold ? threshold : low;
        moves[i] = move;
        total[i] += move;
    }
}

/* What is left of a row when its error is taken out, as a factor. */
QH_INLINE double kept_of(double norm, double threshold)
{
    const double shrinkage = 1.0 - threshold / (norm > 0.0 ? norm : 1.0);
    return 1.0 - (shrinkage < 0.0 ? 0.0 : shrinkage);
}

/* `total`, how far the voices move Khat, becomes the new Khat. In loops of their own, or compilers see branches in `step`. */
QH_INLINE void arrive(size_t n, double share, const double *restrict kernel, double *restrict total)
{
    for (size_t i = 0; i < n; i++) {
        const double wanted = total[i] * share + kernel[i];
        total[i] = wanted < 0.0 ? 0.0 : wanted;
    }
}

QH_INLINE void arrive_pulled(size_t n, double share, const double *restrict pulled, const double *restrict kernel,
                             double *restrict total)
{
    for (size_t i = 0; i < n; i++) {
        const double wanted = total[i] * share + pulled[i] + kernel[i];
        total[i] = wanted < 0.0 ? 0.0 : wanted;
    }
}

/* Khat and Khat - dual_0; `total` becomes the old Khat less the new one. */
QH_INLINE void step(size_t n, double scale, const double *restrict low_rank, double *restrict total,
                    double *restrict kernel, double *restrict shown, double *restrict largest)
{
    for (size_t i = 0; i < n; i++) {
        const double now = total[i], back = kernel[i] - now, residual = fabs(shown[i] + low_rank[i] - now);
        largest[i] = largest[i] < residual ? residual : largest[i];
        shown[i] = now - scale * (low_rank[i] + back);
        kernel[i] = now;
        total[i] = back;
    }
}

QH_INLINE void overrule(size_t n, double scale, double kept, const double *restrict moves, const double *restrict back,
                        double *restrict dual, double *restrict largest)
{
    for (size_t i = 0; i < n; i++) {
        const double refused = moves[i] * kept + back[i], residual = fabs(dual[i] - refused);
        largest[i] = largest[i] < residual ? residual : largest[i];
        dual[i] = refused * scale;
    }
}

size_t qh_sweep_room(size_t n_columns, size_t n_views) { return (n_columns + QH_LANES) * (n_views + 4) + n_views; }

QH_INLINE void sweep_all(qh_sweep *sweep)
{
    const size_t n = sweep->n_columns, width = n + QH_LANES - n % QH_LANES, n_views = sweep->n_views;
    double *largest = sweep->room, *sizes = largest + width, *errors = sizes + width, *total = errors + width;
    double *moves = total + width, *kept = moves + n_views * width; /* (n_views, width), (n_views) */
    memset(sweep->room, 0, qh_sweep_room(n, n_views) * sizeof *sweep->room); /* what is behind a row stays zero */
    sweep->error = sweep->residual = 0.0;
    for (size_t row = 0; row < sweep->n_rows; row++) {
        const size_t at = row * n;
        double *kernel = sweep->kernel + at;
        memcpy(total, sweep->low_rank + at, n * sizeof *total);
        for (size_t m = 0; m < n_views; m++) {
            double *move = moves + m * width;
            const double *dual = sweep->duals[m] + at;
            if (sweep->is_single) move_single(n, (const float *)sweep->views[m] + at, kernel, dual, errors, move);
            else move_double(n, (const double *)sweep->views[m] + at, kernel, dual, errors, move);
            if (sweep->by_rows) {
                sweep->error += norm_of(n, errors);
                kept[m] = kept_of(norm_of(n, move), sweep->threshold);
                add_row(n, kept[m], move, total);
            } else {
                kept[m] = 1.0;
                add_sizes(n, errors, sizes);
                add_entries(n, sweep->threshold, move, total);
            }
        }
        if (sweep->pulled) arrive_pulled(n, sweep->share, sweep->pulled + at, kernel, total);
        else arrive(n, sweep->share, kernel, total);
        step(n, sweep->scale, sweep->low_rank + at, total, kernel, sweep->shown + at, largest);
        for (size_t m = 0; m < n_views; m++)
            overrule(n, sweep->scale, kept[m], moves + m * width, total, sweep->duals[m] + at, largest);
    }
    for (size_t i = 0; i < n; i++) {
        sweep->error += sizes[i];
        sweep->residual = sweep->residual < largest[i] ? largest[i] : sweep->residual;
    }
}

void qh_sweep_portable(qh_sweep *sweep) { sweep_all(sweep); }

#ifdef QH_X86
__attribute__((target("avx2"))) void qh_sweep_avx2(qh_sweep *sweep) { sweep_all(sweep); }

__attribute__((target("avx512f"))) void qh_sweep_avx512(qh_sweep *sweep) { sweep_all(sweep); }
#endif
