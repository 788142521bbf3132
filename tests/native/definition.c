/* Every kernel of this build against the definition of the Hamming distance, bit by bit, and of a sweep of the consensus.
 *
 *     definition N_BITS...    exit status 1, and a sentence, at the first difference; else one line a kernel
 *
 * No Python: it runs where only a compiler for the processor, and something that runs its programs, can be had.
 */
#include "hamming.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENTS 4
#define QUERIES 70 /* more than share a walk through the table */
#define MOST 66000 /* rows of a segment: enough for a first limit from where the query, with a bit turned, would stand */
#define NAMES 16   /* items of one code, at most */

typedef struct { int64_t id; double cost; unsigned distance; } item;

static uint64_t state;
static size_t n_bits, n_bytes, n_checks;
static const char *kernel_name;

static uint64_t draw(uint64_t below) /* splitmix64 */
{
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

static void *room(size_t n)
{
    void *memory = calloc(n + 1, 1);
    if (!memory) exit(3);
    return memory;
}

static void require(int holds, const char *what, size_t where, size_t also)
{
    n_checks++;
    if (holds) return;
    printf("%s, %zu bits: %s differs (%zu, %zu)\n", kernel_name, n_bits, what, where, also);
    exit(1);
}

static unsigned bit(const uint8_t *code, size_t i) { return code[i / 8] >> (7 - i % 8) & 1; }

static unsigned distance_of(const uint8_t *a, const uint8_t *b, size_t n)
{
    unsigned d = 0;
    for (size_t i = 0; i < n; i++) d += bit(a, i) != bit(b, i);
    return d;
}

/* Codes around three centres, some of them alike. */
static uint8_t *make_codes(size_t n)
{
    uint8_t *codes = room(n * n_bytes), *centres = room(3 * n_bytes);
    for (size_t i = 0; i < 3 * n_bytes; i++) centres[i] = (uint8_t)draw(256);
    for (size_t row = 0; row < n; row++) {
        const uint64_t rarity = draw(3), centre = draw(3);
        for (size_t i = 0; i < n_bits; i++) {
            const unsigned flip = rarity && draw(rarity == 1 ? 20 : 3) == 0;
            codes[row * n_bytes + i / 8] |= (uint8_t)((bit(centres + centre * n_bytes, i) ^ flip) << (7 - i % 8));
        }
    }
    free(centres);
    return codes;
}

static uint8_t *to_tiles(const uint8_t *codes, size_t n)
{
    uint8_t *tiles = room((n + QH_TILE) * n_bytes);
    for (size_t row = 0; row < n; row++)
        for (size_t j = 0; j < n_bytes; j++)
            tiles[(row / QH_TILE * n_bytes + j) * QH_TILE + row % QH_TILE] = codes[row * n_bytes + j];
    return tiles;
}

/* ---- the innermost loops, called as they are ---- */

static unsigned lane_of(const uint8_t *tile, int lane, size_t to, const uint8_t *query, const uint8_t *tables)
{
    unsigned sum = 0;
    for (size_t j = 0; j < to; j++) {
        const uint8_t byte = tile[j * QH_TILE + lane];
        if (tables) sum += tables[32 * j + byte % 16] + tables[32 * j + 16 + byte / 16];
        else sum += distance_of(&byte, query + j, 8);
    }
    return sum < 255 ? sum : 255;
}

static void check_run(const qh_kernel *kernel, int is_weighted, size_t n_tiles, size_t n_probes, size_t early)
{
    uint64_t masks[QH_GROUP * QH_RUN];
    uint8_t lanes[QH_GROUP * QH_RUN * QH_TILE], queries[QH_GROUP][QH_MAX_BYTES];
    static uint8_t tables[QH_GROUP][QH_MAX_BYTES * 32];
    uint32_t spread[QH_GROUP][QH_MAX_BYTES];
    qh_probe probes[QH_GROUP];
    const qh_probe *given[QH_GROUP];
    const size_t stride = n_bytes * QH_TILE;
    uint8_t *codes = make_codes(n_tiles * QH_TILE), *tiles = to_tiles(codes, n_tiles * QH_TILE);
    for (size_t p = 0; p < n_probes; p++) {
        const unsigned limits[] = {(unsigned)draw(12), (unsigned)draw(256), 253 + (unsigned)draw(3)};
        memcpy(queries[p], codes + draw(n_tiles * QH_TILE) * n_bytes, n_bytes);
        for (size_t j = 0; j < n_bytes; j++) {
            spread[p][j] = 0x01010101u * queries[p][j];
            for (unsigned half = 0; half < 16; half++) {
                const uint8_t low = (uint8_t)(half ^ (queries[p][j] & 15)), high = (uint8_t)(half ^ (queries[p][j] >> 4));
                const uint8_t none = 0;
                tables[p][32 * j + half] = is_weighted ? (uint8_t)draw(p % 2 ? 256 : 7) : distance_of(&low, &none, 8);
                tables[p][32 * j + 16 + half] = is_weighted ? (uint8_t)draw(7) : distance_of(&high, &none, 8);
            }
        }
        probes[p] = (qh_probe){is_weighted ? NULL : spread[p], tables[p], limits[draw(3)]};
        given[p] = &probes[p];
    }
    memset(masks, 0xaa, sizeof masks);
    qh_run *run = is_weighted ? kernel->weighted : kernel->hamming;
    const unsigned any = run(tiles, n_tiles, stride, n_bytes, early, given, n_probes, masks, lanes);
    for (size_t p = 0; p < n_probes; p++) {
        unsigned has_hits = 0;
        for (size_t t = 0; t < n_tiles; t++) {
            uint64_t mask = 0;
            for (int i = 0; i < QH_TILE; i++) {
                const unsigned lane = lane_of(tiles + t * stride, i, n_bytes, queries[p], is_weighted ? tables[p] : NULL);
                if (lane > probes[p].limit) continue;
                mask |= (uint64_t)1 << i;
                require(lanes[(p * QH_RUN + t) * QH_TILE + i] == lane, "a lane", t, (size_t)i);
            }
            require(masks[p * QH_RUN + t] == mask, is_weighted ? "a weighted mask" : "a mask", p, t);
            has_hits |= mask != 0;
        }
        require((any >> p & 1) == has_hits, "whether there are hits", p, n_tiles);
    }
    free(codes);
    free(tiles);
}

static void check_runs(const qh_kernel *kernel)
{
    const size_t lengths[] = {1, 2, 7, QH_RUN}, halves[] = {1, (n_bytes + 1) / 2, n_bytes - (n_bytes > 1), n_bytes};
    for (size_t i = 0; i < 4; i++)
        for (size_t n_probes = 1; n_probes <= QH_GROUP; n_probes++) {
            if (n_bytes <= QH_NARROW) check_run(kernel, 0, lengths[i], n_probes, halves[(i + n_probes) % 4]);
            check_run(kernel, 1, lengths[i], n_probes, n_bytes);
        }
}

static void check_near_words(const qh_kernel *kernel)
{
    uint64_t words[64];
    for (size_t n = 1; n <= 64; n++) {
        const uint64_t query = (uint64_t)draw(UINT32_MAX) << 32 | draw(UINT32_MAX);
        const unsigned limit = (unsigned)draw(65);
        uint64_t mask = 0;
        for (size_t i = 0; i < n; i++) {
            words[i] = query;
            for (size_t flips = draw(65); flips; flips--) words[i] ^= (uint64_t)1 << draw(64);
            const unsigned distance = distance_of((const uint8_t *)&words[i], (const uint8_t *)&query, 64);
            mask |= (uint64_t)(distance <= limit) << i;
        }
        require(kernel->near_words(words, n, query, limit) == mask, "words near a query", n, limit);
    }
}

/* ---- whole searches ---- */

typedef struct {
    qh_segment segments[SEGMENTS];
    uint8_t *codes[SEGMENTS], *queries;
    double *costs; /* (QUERIES, n_bytes, 256) whole numbers, so that sums are exact and often equal */
    item *by_distance[QUERIES], *by_cost[QUERIES]; /* every item that counts, the best first, ties by id */
    size_t n_items;
} table;

static void make_segment(table *made, size_t s, size_t n_rows)
{
    qh_segment *segment = &made->segments[s];
    uint32_t *offsets = room((n_rows + 1) * sizeof *offsets);
    size_t *order = room(n_rows * sizeof *order);
    made->codes[s] = make_codes(n_rows);
    *segment = (qh_segment){.n_rows = n_rows, .tiles = to_tiles(made->codes[s], n_rows), .first_id = 1000000000};
    for (size_t row = 0; row < n_rows; row++) offsets[row + 1] = offsets[row] + (uint32_t)(s == 1 ? 1 : draw(NAMES) / 5 + 1);
    for (size_t row = 0; row < n_rows; row++) {
        const size_t place = draw(row + 1);
        order[row] = order[place];
        order[place] = row;
    }
    if (s != 3) { /* the last one has running ids */
        int64_t *ids = room(offsets[n_rows] * sizeof *ids);
        uint8_t *allowed = room(offsets[n_rows]);
        for (size_t row = 0; row < n_rows; row++)
            for (uint32_t i = offsets[row]; i < offsets[row + 1]; i++) {
                ids[i] = (int64_t)((order[row] * NAMES + (i - offsets[row])) * SEGMENTS + s) - 400;
                allowed[i] = (uint8_t)(draw(5) != 0);
            }
        segment->ids = ids;
        if (s != 1) segment->offsets = offsets;
        if (s == 2) segment->allowed = allowed;
        else free(allowed);
    }
    if (!segment->offsets) free(offsets);
    free(order);
}

static void make_bands(qh_segment *segment, const uint8_t *codes)
{
    qh_bands *bands = room(sizeof *bands);
    uint64_t *words;
    bands->n_words = (n_bits + 63) / 64;
    bands->n_bands = (n_bits + 9) / 10;
    words = room(segment->n_rows * bands->n_words * 8);
    for (size_t row = 0; row < segment->n_rows; row++)
        for (size_t i = 0; i < n_bits; i++)
            words[row * bands->n_words + i / 64] |= (uint64_t)bit(codes + row * n_bytes, i) << (63 - i % 64);
    for (size_t b = 0; b < bands->n_bands; b++) {
        const uint32_t start = (uint32_t)(b * n_bits / bands->n_bands), end = (uint32_t)((b + 1) * n_bits / bands->n_bands);
        uint32_t *offsets = room((((size_t)1 << (end - start)) + 1) * 4), *rows = room(segment->n_rows * 4);
        uint64_t *sorted = bands->n_words == 1 ? room(segment->n_rows * 8) : NULL;
        qh_fill_band(words, segment->n_rows, bands->n_words, start, end - start, offsets, rows, sorted);
        bands->start[b] = start;
        bands->width[b] = end - start;
        bands->offsets[b] = offsets;
        bands->rows[b] = rows;
        bands->codes[b] = sorted ? sorted : words;
    }
    if (bands->n_words == 1) free(words);
    segment->bands = bands;
}

static int by_cost(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* By definition, or by the costs of wrong bits. */
static item *rank_all(table *made, const uint8_t *query, const double *costs)
{
    size_t n = 0;
    for (size_t s = 0; s < SEGMENTS; s++) n += made->segments[s].n_rows * NAMES;
    item *items = room(n * sizeof *items);
    made->n_items = 0;
    for (size_t s = 0; s < SEGMENTS; s++)
        for (size_t row = 0; row < made->segments[s].n_rows; row++) {
            const qh_segment *segment = &made->segments[s];
            const uint8_t *code = made->codes[s] + row * n_bytes;
            const unsigned distance = distance_of(code, query, n_bits);
            double cost = costs ? 0 : distance;
            for (size_t j = 0; costs && j < n_bytes; j++) cost += costs[256 * j + code[j]];
            const size_t last = segment->offsets ? segment->offsets[row + 1] : row + 1;
            for (size_t i = segment->offsets ? segment->offsets[row] : row; i < last; i++)
                if (!segment->allowed || segment->allowed[i])
                    items[made->n_items++] = (item){qh_id(segment, i), cost, distance};
        }
    qsort(items, made->n_items, sizeof *items, by_cost);
    return items;
}

static void check_searches(qh_search search, table *made, size_t n_queries)
{
    const size_t all = made->n_items, most[] = {1, 2, 7, 100, all - 1, all};
    int64_t *ids = room(n_queries * (all + 1) * 8), offsets[QUERIES + 1];
    uint16_t *distances = room(n_queries * (all + 1) * 2);
    double *costs = room(n_queries * (all + 1) * 8);
    for (size_t i = 0; i < 6; i++) {
        const size_t k = most[i];
        if (!k || k > all) continue;
        require(qh_nearest(&search, made->queries, n_queries, k, ids, distances) == QH_OK, "the status of nearest", k, all);
        for (size_t q = 0; q < n_queries; q++) {
            const item *wanted = made->by_distance[q];
            for (size_t r = 0; r < k; r++)
                require(ids[q * k + r] == wanted[r].id && distances[q * k + r] == wanted[r].distance, "a nearest item", q, r);
        }
        if (search.stage || search.segments[0].bands) continue;
        require(qh_ranked(&search, made->queries, made->costs, n_queries, k, ids, costs, distances) == QH_OK,
                "the status of ranked", k, all);
        for (size_t q = 0; q < n_queries; q++) {
            const item *wanted = made->by_cost[q];
            for (size_t r = 0; r < k; r++)
                require(ids[q * k + r] == wanted[r].id && costs[q * k + r] == wanted[r].cost &&
                            distances[q * k + r] == wanted[r].distance, "a ranked item", q, r);
        }
    }
    require(qh_nearest(&search, made->queries, 1, all + 1, ids, distances) == QH_TOO_FEW, "k beyond all items", all, 0);
    const unsigned radii[] = {0, 1, 2, (unsigned)n_bits / 4, (unsigned)n_bits};
    for (size_t i = 0; i < 5; i++) {
        qh_found found = {0};
        if (radii[i] > n_bits) continue; /* the caller's part */
        require(qh_within(&search, made->queries, n_queries, radii[i], offsets, &found) == QH_OK, "the status of within", i, 0);
        for (size_t q = 0; q < n_queries; q++) {
            const item *wanted = made->by_distance[q];
            size_t n = 0;
            while (n < all && wanted[n].distance <= radii[i]) n++;
            require(offsets[q + 1] - offsets[q] == (int64_t)n, "the number within", q, radii[i]);
            for (size_t r = 0; r < n; r++)
                require(found.ids[offsets[q] + (int64_t)r] == wanted[r].id &&
                            found.distances[offsets[q] + (int64_t)r] == wanted[r].distance, "an item within", q, r);
        }
        free(found.ids);
        free(found.distances);
    }
    free(ids);
    free(distances);
    free(costs);
}

static void make_table(table *made, size_t largest, size_t n_queries)
{
    const size_t sizes[SEGMENTS] = {largest, 65, 129, 63};
    memset(made, 0, sizeof *made);
    for (size_t s = 0; s < SEGMENTS; s++) make_segment(made, s, sizes[s]);
    made->queries = make_codes(QUERIES);
    memcpy(made->queries, made->codes[0], n_bytes);
    made->costs = room(QUERIES * n_bytes * 256 * sizeof *made->costs);
    for (size_t q = 0; q < QUERIES; q++)
        for (size_t j = 0; j < n_bytes; j++) {
            uint64_t weights[8];
            for (int i = 0; i < 8; i++) weights[i] = draw(4);
            for (size_t value = 0; value < 256; value++)
                for (int i = 0; i < 8; i++)
                    if ((value ^ made->queries[q * n_bytes + j]) >> (7 - i) & 1)
                        made->costs[(q * n_bytes + j) * 256 + value] += (double)weights[i];
        }
    for (size_t q = 0; q < n_queries; q++) {
        made->by_distance[q] = rank_all(made, made->queries + q * n_bytes, NULL);
        made->by_cost[q] = rank_all(made, made->queries + q * n_bytes, made->costs + q * n_bytes * 256);
    }
}

static void check_table(const qh_kernel *kernel, size_t largest, size_t n_queries)
{
    table made;
    make_table(&made, largest, n_queries);
    qh_search search = {.kernel = kernel, .segments = made.segments, .n_segments = SEGMENTS, .n_bits = n_bits,
                        .n_bytes = n_bytes, .scan_cost = -1, .look_up_cost = 18, .candidate_cost = 3};
    check_searches(search, &made, n_queries);
    for (search.stage = 1; search.stage < n_bytes && search.stage < QH_NARROW; search.stage += 7)
        check_searches(search, &made, n_queries < 3 ? n_queries : 3);
    search.stage = 0;
    for (size_t s = 0; s < SEGMENTS; s++) make_bands(&made.segments[s], made.codes[s]);
    check_searches(search, &made, n_queries < 3 ? n_queries : 3);
} /* what it took goes with the program */

/* ---- a sweep of the consensus ---- */

#define VOICES 3

static double *make_matrix(size_t n, double scale)
{
    double *made = room(n * sizeof *made);
    for (size_t i = 0; i < n; i++) made[i] = scale * (double)draw(1u << 20) / (1u << 20);
    return made;
}

static int is_near(double a, double b) { return fabs(a - b) <= 1e-12 * (1 + fabs(b)); }

/* v less its error, for column i of a row. */
static double less_error(const qh_sweep *sweep, const double *row, size_t i)
{
    double squares = 0;
    if (!sweep->by_rows) return fmin(fmax(row[i], -sweep->threshold), sweep->threshold);
    for (size_t j = 0; j < sweep->n_columns; j++) squares += row[j] * row[j];
    return squares > 0 ? row[i] - row[i] * fmax(0, 1 - sweep->threshold / sqrt(squares)) : 0;
}

static void check_sweep(const qh_kernel *kernel, size_t n_rows, size_t n, size_t n_views, unsigned kind)
{
    const size_t all = n_rows * n;
    double *state[2 + VOICES], *before[2 + VOICES], *views[VOICES], *singles[VOICES], residual = 0, error = 0;
    double *low = make_matrix(all, 0.1), *pulled = make_matrix(all, 0.1), *row = room(n * sizeof *row);
    const void *given[VOICES];
    for (size_t i = 0; i < all; i += 3) low[i] -= 3; /* Khat would be negative */
    if (!(kind & 2)) low[all - 1] = -9;
    for (size_t part = 0; part < 2 + n_views; part++) {
        state[part] = make_matrix(all, part < 2 ? 1 : 0.1);
        memset(state[part] + (n_rows / 2) * n, 0, n * sizeof **state);
        if (part > 1 && kind & 2) state[part][n - 1] = -4; /* the largest residual */
        before[part] = room(all * sizeof **before);
        memcpy(before[part], state[part], all * sizeof **before);
    }
    for (size_t m = 0; m < n_views; m++) {
        views[m] = make_matrix(all, 1);
        singles[m] = room(all * sizeof **singles);
        memset(views[m] + (n_rows / 2) * n, 0, n * sizeof **views);
        for (size_t i = 0; i < all; i++) ((float *)singles[m])[i] = (float)views[m][i];
        given[m] = kind & 1 ? (void *)singles[m] : (void *)views[m];
    }
    qh_sweep sweep = {.n_rows = n_rows, .n_columns = n, .n_views = n_views, .threshold = 0.3, .share = 0.3, .scale = 0.9,
                      .by_rows = kind >> 1 & 1, .is_single = kind & 1, .kernel = state[0], .shown = state[1],
                      .low_rank = low, .pulled = kind & 4 ? pulled : NULL, .duals = state + 2, .views = given,
                      .room = malloc(qh_sweep_room(n, n_views) * sizeof(double))};
    kernel->sweep(&sweep);
    for (size_t at = 0; at < all; at++) {
        const size_t i = at % n, start = at - i;
        double kept[VOICES], total = low[at];
        for (size_t m = 0; m < n_views; m++) {
            double squares = 0;
            for (size_t j = 0; j < n; j++) {
                const double e = views[m][start + j] - before[0][start + j];
                row[j] = e + before[2 + m][start + j];
                squares += e * e;
            }
            if (sweep.by_rows) error += i ? 0 : sqrt(squares);
            else error += fabs(views[m][at] - before[0][at]);
            total += kept[m] = less_error(&sweep, row, i);
        }
        const double old = before[0][at];
        const double now = fmax(0, old + total * sweep.share + (sweep.pulled ? pulled[at] : 0));
        require(is_near(state[0][at], now), "Khat of a sweep", start, i);
        require(is_near(state[1][at], now - sweep.scale * (low[at] + old - now)), "Khat - dual_0 of a sweep", start, i);
        residual = fmax(residual, fabs(before[1][at] + low[at] - now));
        for (size_t m = 0; m < n_views; m++) {
            const double refused = kept[m] + old - now;
            require(is_near(state[2 + m][at], refused * sweep.scale), "a dual of a sweep", start, i);
            residual = fmax(residual, fabs(before[2 + m][at] - refused));
        }
    }
    require(is_near(sweep.residual, residual), "the residual of a sweep", n, n_views);
    require(is_near(sweep.error, error), "the error of a sweep", n, n_views);
    free(sweep.room);
} /* what else it took goes with the program */

static void check_sweeps(const qh_kernel *kernel)
{
    const size_t widths[] = {1, 7, 8, 9, 31, 64, 300};
    for (size_t i = 0; i < 7; i++)
        for (size_t n_views = 1; n_views <= VOICES; n_views++)
            for (unsigned kind = 0; kind < 8; kind++) check_sweep(kernel, 3, widths[i], n_views, kind);
}

int main(int n_arguments, char **arguments)
{
    const qh_kernel *found[4];
    const size_t n_kernels = qh_kernels(found);
    for (size_t i = 0; i < n_kernels; i++) {
        n_checks = 0;
        kernel_name = found[i]->name;
        check_near_words(found[i]);
        check_sweeps(found[i]);
        for (int a = 1; a < n_arguments; a++) {
            n_bits = (size_t)atoi(arguments[a]);
            n_bytes = (n_bits + 7) / 8;
            state = n_bits; /* the same draws for every kernel */
            check_runs(found[i]);
            check_table(found[i], 1, 1);
            check_table(found[i], 150, 5);
            if (n_bits == 13 || n_bits == 248) check_table(found[i], 300, QUERIES);
            if (n_bits == 64) check_table(found[i], MOST, 2);
            if (n_bits == 128) check_table(found[i], MOST / 7, 2);
        }
        printf("%s %zu\n", kernel_name, n_checks);
    }
    return 0;
}
