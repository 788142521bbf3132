/* Exact k nearest by real scores: a code costs the sum of |score| over the bits whose sign it has wrong.
 *
 * Costs are sums of one table entry a byte, added in the order of the bytes, in double precision: the same on every
 * kernel. To add them for few codes only, the costs of half bytes are rounded down to steps of a byte lane, and the
 * kernel marks the codes whose sum of steps leaves them a chance.
 */
#include "hamming.h"

#include <stdlib.h>

#define STEPS 224.0 /* how finely costs up to the limit are told apart: the sum of rounded steps must stay below 255 */

typedef struct {
    double cost;
    int64_t id;
    uint32_t row;
    uint16_t segment;
} ranked;

typedef struct { /* the k best so far, a heap with the worst on top */
    size_t n, k;
    ranked *heap;
} best;

typedef struct {
    double made_for, step; /* the limit that the steps were made for */
    uint8_t tables[QH_MAX_BYTES * 32];
} filter;

static int is_worse(ranked a, ranked b) { return a.cost > b.cost || (a.cost == b.cost && a.id > b.id); }

static void sift_down(ranked *heap, size_t n, size_t i, ranked entry)
{
    while (2 * i + 1 < n) {
        size_t child = 2 * i + 1;
        if (child + 1 < n && is_worse(heap[child + 1], heap[child])) child++;
        if (!is_worse(heap[child], entry)) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = entry;
}

/* 0 when the entry is worse than all of a full heap. */
static int keep_best(best *kept, ranked entry)
{
    if (kept->n == kept->k) {
        if (!is_worse(kept->heap[0], entry)) return 0;
        sift_down(kept->heap, kept->n, 0, entry);
        return 1;
    }
    size_t i = kept->n++;
    for (; i > 0 && is_worse(entry, kept->heap[(i - 1) / 2]); i = (i - 1) / 2) kept->heap[i] = kept->heap[(i - 1) / 2];
    kept->heap[i] = entry;
    return 1;
}

/* First byte of a code; the others follow at every QH_TILE bytes. */
static const uint8_t *code_of(const qh_search *search, size_t number, size_t row)
{
    return search->segments[number].tiles + row / QH_TILE * search->n_bytes * QH_TILE + row % QH_TILE;
}

static void take_row(const qh_search *search, size_t number, size_t row, const double *table, best *kept)
{
    const qh_segment *segment = &search->segments[number];
    const uint8_t *code = code_of(search, number, row);
    const size_t end = segment->offsets ? segment->offsets[row + 1] : row + 1;
    ranked entry = {0, 0, (uint32_t)row, (uint16_t)number};
    for (size_t j = 0; j < search->n_bytes; j++) entry.cost += table[256 * j + code[j * QH_TILE]];
    for (size_t item = segment->offsets ? segment->offsets[row] : row; item < end; item++) {
        if (segment->allowed && !segment->allowed[item]) continue;
        entry.id = qh_id(segment, item);
        if (!keep_best(kept, entry)) return; /* ids of a row rise */
    }
}

/* What the halves of each byte cost at least, in steps of `step`. */
static void step_tables(const double *table, size_t n_bytes, double step, uint8_t *steps)
{
    for (size_t j = 0; j < n_bytes; j++)
        for (unsigned half = 0; half < 16; half++) {
            double low = table[256 * j + half], high = table[256 * j + 16 * half];
            for (unsigned other = 1; other < 16; other++) {
                const double a = table[256 * j + 16 * other + half], b = table[256 * j + 16 * half + other];
                low = a < low ? a : low;
                high = b < high ? b : high;
            }
            steps[32 * j + half] = (uint8_t)(low / step < 255 ? low / step : 255);
            steps[32 * j + 16 + half] = (uint8_t)(high / step < 255 ? high / step : 255);
        }
}

/* Steps for costs up to `limit`; kept as they are where it is too small to be divided. */
static void make_steps(filter *given, const double *table, size_t n_bytes, double limit)
{
    if (!(limit > 1e-280)) return;
    given->made_for = limit;
    given->step = limit / STEPS;
    step_tables(table, n_bytes, given->step, given->tables);
}

static void take_run(const qh_search *search, size_t number, size_t first, const double *table, filter *given,
                     best *kept)
{
    const qh_segment *segment = &search->segments[number];
    uint64_t masks[QH_RUN];
    uint8_t lanes[QH_RUN * QH_TILE];
    const size_t stride = search->n_bytes * QH_TILE, left = (segment->n_rows + QH_TILE - 1) / QH_TILE - first;
    const size_t n_tiles = left < QH_RUN ? left : QH_RUN;
    qh_probe query = {NULL, given->tables, 255};
    const qh_probe *probe = &query;
    if (kept->n == kept->k) {
        const double limit = kept->heap[0].cost;
        if (limit < 0.7 * given->made_for) make_steps(given, table, search->n_bytes, limit);
        const double lane = limit / given->step + 1; /* one step of slack for the rounding of quotients and sums */
        query.limit = lane < 255 ? (unsigned)lane : 255;
    }
    search->kernel->weighted(segment->tiles + first * stride, n_tiles, stride, search->n_bytes, search->n_bytes,
                             &probe, 1, masks, lanes);
    for (size_t t = 0; t < n_tiles; t++)
        for (uint64_t mask = masks[t]; mask; mask &= mask - 1) {
            const size_t row = (first + t) * QH_TILE + qh_lowest(mask);
            if (row < segment->n_rows) take_row(search, number, row, table, kept);
        }
}

/* What the code of all wrong signs costs. */
static double worst_cost(const double *table, size_t n_bytes)
{
    double total = 0;
    for (size_t j = 0; j < n_bytes; j++) {
        double worst = 0;
        for (size_t value = 0; value < 256; value++)
            worst = table[256 * j + value] > worst ? table[256 * j + value] : worst;
        total += worst;
    }
    return total;
}

static void rank_one(const qh_search *search, const uint8_t *query, const double *table, best *kept)
{
    filter given = {.made_for = 0, .step = 1};
    make_steps(&given, table, search->n_bytes, worst_cost(table, search->n_bytes));
    for (size_t s = 0; s < search->n_segments; s++) {
        const qh_segment *segment = &search->segments[s];
        const size_t n_runs = (segment->n_rows + QH_RUN * QH_TILE - 1) / (QH_RUN * QH_TILE);
        if (!n_runs) continue;
        const size_t home = qh_home_tile(segment, search->n_bytes, query) / QH_RUN; /* near codes early: a low limit */
        for (size_t run = 0; run < n_runs; run++)
            take_run(search, s, (home + run) % n_runs * QH_RUN, table, &given, kept);
    }
}

static uint16_t n_wrong(const qh_search *search, const uint8_t *query, ranked entry)
{
    const uint8_t *code = code_of(search, entry.segment, entry.row);
    unsigned n = 0;
    for (size_t j = 0; j < search->n_bytes; j++)
        for (unsigned wrong = code[j * QH_TILE] ^ query[j]; wrong; wrong &= wrong - 1) n++;
    return (uint16_t)n;
}

int qh_ranked(qh_search *search, const uint8_t *queries, const double *tables, size_t n_queries, size_t k,
              int64_t *ids, double *costs, uint16_t *distances)
{
    best kept = {0, k, malloc((k ? k : 1) * sizeof *kept.heap)};
    int problem = kept.heap ? QH_OK : QH_NO_MEMORY;
    for (size_t q = 0; !problem && q < n_queries; q++) {
        const uint8_t *query = queries + q * search->n_bytes;
        kept.n = 0;
        rank_one(search, query, tables + q * search->n_bytes * 256, &kept);
        if (kept.n < k) problem = QH_TOO_FEW;
        while (!problem && kept.n) { /* the worst goes to the end */
            const ranked worst = kept.heap[0];
            const size_t place = q * k + --kept.n;
            if (kept.n) sift_down(kept.heap, kept.n, 0, kept.heap[kept.n]);
            ids[place] = worst.id;
            costs[place] = worst.cost;
            distances[place] = n_wrong(search, query, worst);
        }
    }
    search->n_scanned += n_queries * search->n_segments;
    free(kept.heap);
    return problem;
}
