/* Exact k nearest and everything within a radius: tiles are walked run by run, each run for a chunk of queries while it
 * is in the cache; what a kernel marks is counted by distance, and the counts say how near the k-th item is at most. */
#include "hamming.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 64            /* queries that share a walk through the table */
#define MAX_BITS (8 * QH_MAX_BYTES)
#define LATER 4             /* queries ahead whose rows are fetched; twice as many: where their rows begin */
#define DEVIATIONS 3.0      /* from the mean distance, at which a tile is looked at for leaving it early */
#define WINDOW 8            /* tiles that are looked at together for a first limit; not more than QH_RUN */
#define MOST_TURNED 12      /* first bits that are turned round for it, one at a time */

/* ---- counting selection ---- */

/* Begin anew, with the memory of the query before. */
static int selection_reset(qh_selection *selection, size_t n_bits, size_t k, unsigned limit)
{
    const size_t n_bytes = (n_bits + 1) * sizeof *selection->counts;
    if (!selection->counts) selection->counts = malloc(n_bytes);
    if (!selection->hits) selection->hits = malloc((selection->capacity = 256) * sizeof *selection->hits);
    if (!selection->counts || !selection->hits) return QH_NO_MEMORY;
    memset(selection->counts, 0, n_bytes);
    selection->k = k;
    selection->limit = limit;
    selection->n_within = selection->n_hits = 0;
    return QH_OK;
}

static void lower_limit(qh_selection *selection)
{
    while (selection->limit > 0 && selection->n_within - selection->counts[selection->limit] >= selection->k)
        selection->n_within -= selection->counts[selection->limit--];
}

static void set_limit(qh_selection *selection, unsigned limit)
{
    while (selection->limit > limit) selection->n_within -= selection->counts[selection->limit--];
}

static int make_room(qh_selection *selection)
{
    size_t kept = 0;
    for (size_t i = 0; i < selection->n_hits; i++)
        if (selection->hits[i].distance <= selection->limit) selection->hits[kept++] = selection->hits[i];
    selection->n_hits = kept;
    if (kept > selection->capacity / 2) {
        qh_hit *larger = realloc(selection->hits, 2 * selection->capacity * sizeof *larger);
        if (!larger) return QH_NO_MEMORY;
        selection->hits = larger;
        selection->capacity *= 2;
    }
    return QH_OK;
}

static size_t n_items(const qh_segment *segment, size_t row)
{
    const size_t first = segment->offsets ? segment->offsets[row] : row;
    const size_t last = segment->offsets ? segment->offsets[row + 1] : row + 1;
    if (!segment->allowed) return last - first;
    size_t n = 0;
    for (size_t i = first; i < last; i++) n += segment->allowed[i] != 0;
    return n;
}

int qh_add_hit(qh_selection *selection, const qh_segment *segment, size_t number, size_t row, unsigned distance)
{
    if (distance > selection->limit) return QH_OK;
    if (selection->n_hits == selection->capacity && make_room(selection)) return QH_NO_MEMORY;
    if (selection->k == QH_EVERYTHING) { /* the limit stands: items are counted at the end, when memory has fetched them */
        if (segment->offsets) QH_PREFETCH(segment->offsets + row);
        else if (segment->ids) QH_PREFETCH(segment->ids + row);
        selection->hits[selection->n_hits++] = (qh_hit){(uint32_t)row, (uint16_t)distance, (uint16_t)number};
        return QH_OK;
    }
    const size_t weight = n_items(segment, row);
    if (!weight) return QH_OK;
    selection->hits[selection->n_hits++] = (qh_hit){(uint32_t)row, (uint16_t)distance, (uint16_t)number};
    selection->counts[distance] += weight;
    selection->n_within += weight;
    lower_limit(selection);
    return QH_OK;
}

/* Undo the hits of one segment. The limit stays: items that exist have shown it, and a scan will find them again. */
void qh_forget_hits(qh_selection *selection, const qh_segment *segment, size_t number)
{
    size_t kept = 0;
    for (size_t i = 0; i < selection->n_hits; i++) {
        const qh_hit hit = selection->hits[i];
        if (hit.segment != number) {
            selection->hits[kept++] = hit;
        } else if (hit.distance <= selection->limit && selection->k != QH_EVERYTHING) {
            const size_t weight = n_items(segment, hit.row);
            selection->counts[hit.distance] -= weight;
            selection->n_within -= weight;
        }
    }
    selection->n_hits = kept;
}

/* Count the items of hits that were only noted. */
static void count_hits(const qh_search *search, qh_selection *selection)
{
    for (size_t i = 0; i < selection->n_hits; i++) {
        const qh_hit hit = selection->hits[i];
        const qh_segment *segment = &search->segments[hit.segment];
        const size_t weight = n_items(segment, hit.row);
        if (segment->offsets && segment->ids) QH_PREFETCH(segment->ids + segment->offsets[hit.row]);
        selection->counts[hit.distance] += weight;
        selection->n_within += weight;
    }
}

static int by_id(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void sort_ids(int64_t *ids, size_t n)
{
    if (n > 32) {
        qsort(ids, n, sizeof *ids, by_id);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        const int64_t id = ids[i];
        size_t j = i;
        for (; j > 0 && ids[j - 1] > id; j--) ids[j] = ids[j - 1];
        ids[j] = id;
    }
}

/* Keep the `room` smallest ids in a heap with the largest on top; 0 when the id is larger than all of a full heap. */
static int keep_smallest(int64_t *heap, size_t *n, size_t room, int64_t id)
{
    size_t i;
    if (*n < room) {
        for (i = (*n)++; i > 0 && heap[(i - 1) / 2] < id; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    } else {
        if (id >= heap[0]) return 0;
        for (i = 0; 2 * i + 1 < room;) {
            size_t child = 2 * i + 1;
            if (child + 1 < room && heap[child + 1] > heap[child]) child++;
            if (heap[child] <= id) break;
            heap[i] = heap[child];
            i = child;
        }
    }
    heap[i] = id;
    return 1;
}

/* The n_out nearest of all hits, nearest first, ties by id. */
static int write_out(const qh_search *search, const qh_selection *selection, size_t n_out, int64_t *ids,
                     uint16_t *distances)
{
    size_t starts[MAX_BITS + 2], ends[MAX_BITS + 1], n = 0;
    const unsigned last = selection->limit;
    for (unsigned d = 0; d <= last; d++) {
        starts[d] = ends[d] = n < n_out ? n : n_out;
        n += selection->counts[d];
    }
    starts[last + 1] = n_out;
    if (n < n_out) return QH_TOO_FEW;
    const int is_cut = n > n_out; /* of the items at the last distance only the smallest ids have room */
    for (size_t i = 0; i < selection->n_hits; i++) {
        const qh_hit hit = selection->hits[i];
        if (hit.distance > last) continue;
        const qh_segment *segment = &search->segments[hit.segment];
        const size_t end = segment->offsets ? segment->offsets[hit.row + 1] : (size_t)hit.row + 1;
        const size_t room = starts[hit.distance + 1] - starts[hit.distance];
        int64_t *bucket = ids + starts[hit.distance];
        size_t n_kept = ends[hit.distance] - starts[hit.distance];
        if (!room) continue;
        for (size_t item = segment->offsets ? segment->offsets[hit.row] : hit.row; item < end; item++) {
            if (segment->allowed && !segment->allowed[item]) continue;
            if (hit.distance < last || !is_cut) bucket[n_kept++] = qh_id(segment, item);
            else if (!keep_smallest(bucket, &n_kept, room, qh_id(segment, item))) break; /* ids of a row rise */
        }
        ends[hit.distance] = starts[hit.distance] + n_kept;
    }
    for (unsigned d = 0; d <= last; d++) {
        sort_ids(ids + starts[d], starts[d + 1] - starts[d]);
        for (size_t i = starts[d]; i < starts[d + 1]; i++) distances[i] = (uint16_t)d;
    }
    return QH_OK;
}

/* ---- queries as kernels read them ---- */

typedef struct {
    qh_probe probes[CHUNK];
    qh_selection selections[CHUNK];
    uint32_t *spread; /* (CHUNK, n_bytes) */
    uint8_t *tables;  /* (CHUNK, n_bytes, 32) */
    const uint8_t *queries;
    size_t n_queries, n_probes; /* n_probes: queries whose probes are made; look-ups need none */
} chunk;

static void spread_bytes(const uint8_t *query, size_t n_bytes, uint32_t *spread)
{
    for (size_t j = 0; j < n_bytes; j++) spread[j] = query[j] * 0x01010101u;
}

static void bit_tables(const uint8_t *query, size_t n_bytes, uint8_t *tables)
{
    static const uint8_t n_ones[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
    for (size_t j = 0; j < n_bytes; j++)
        for (unsigned half = 0; half < 16; half++) {
            tables[32 * j + half] = n_ones[half ^ (query[j] & 15)];
            tables[32 * j + 16 + half] = n_ones[half ^ (query[j] >> 4)];
        }
}

static void make_probes(const qh_search *search, chunk *given)
{
    for (; given->n_probes < given->n_queries; given->n_probes++) {
        const size_t q = given->n_probes;
        const uint8_t *query = given->queries + q * search->n_bytes;
        uint32_t *spread = given->spread + q * search->n_bytes;
        uint8_t *tables = given->tables + q * search->n_bytes * 32;
        spread_bytes(query, search->n_bytes, spread);
        bit_tables(query, search->n_bytes, tables);
        given->probes[q] = (qh_probe){spread, tables, 255};
    }
}

/* ---- one run of tiles ---- */

static uint64_t n_ones(uint64_t x)
{
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    return (((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u) >> 56;
}

static void count_lanes(size_t *counts, const uint64_t *masks, size_t n_tiles, const uint8_t *distances)
{
    for (size_t t = 0; t < n_tiles; t++)
        for (uint64_t mask = masks[t]; mask; mask &= mask - 1) counts[distances[t * QH_TILE + qh_lowest(mask)]]++;
}

/* The k-th distance of some rows alone is a limit, too; `counts` has how many stand at each distance beyond `base`. */
static void tighten(qh_selection *selection, const size_t *counts, unsigned base)
{
    size_t n = 0;
    for (unsigned d = 0; d + base < selection->limit; d++) {
        n += counts[d];
        if (n >= selection->k) {
            set_limit(selection, d + base);
            return;
        }
    }
}

/* Distances are `base` less than they are: that of the bytes that all rows share. */
static int take_hits(qh_selection *selection, const qh_segment *segment, size_t number, size_t first_tile,
                     size_t n_rows, uint64_t *masks, const uint8_t *distances, unsigned base)
{
    const size_t n_tiles = (n_rows + QH_TILE - 1) / QH_TILE;
    if (n_rows % QH_TILE) masks[n_tiles - 1] &= ((uint64_t)1 << n_rows % QH_TILE) - 1;
    if (!segment->allowed && selection->k <= n_rows) { /* not for QH_EVERYTHING */
        size_t n_hits = 0;
        for (size_t t = 0; t < n_tiles; t++) n_hits += n_ones(masks[t]);
        if (n_hits > selection->k + 64) {
            size_t counts[256] = {0};
            count_lanes(counts, masks, n_tiles, distances);
            tighten(selection, counts, base);
        }
    }
    for (size_t t = 0; t < n_tiles; t++)
        for (uint64_t mask = masks[t]; mask; mask &= mask - 1) {
            const int lane = qh_lowest(mask);
            const unsigned distance = base + distances[t * QH_TILE + lane];
            if (distance <= selection->limit &&
                qh_add_hit(selection, segment, number, (first_tile + t) * QH_TILE + lane, distance))
                return QH_NO_MEMORY;
        }
    return QH_OK;
}

/* Codes too wide for a byte lane, and nested ones: stage after stage, until every code of a tile is beyond the limit. */
static int take_staged(const qh_search *search, qh_selection *selection, const qh_probe *whole, size_t number,
                       size_t first_tile, size_t n_tiles, size_t n_rows)
{
    const qh_segment *segment = &search->segments[number];
    const size_t stride = search->n_bytes * QH_TILE;
    uint64_t mask[QH_RUN];
    uint8_t lanes[QH_RUN * QH_TILE];
    for (size_t t = 0; t < n_tiles; t++) {
        const uint8_t *tile = segment->tiles + (first_tile + t) * stride;
        const size_t n_lanes = n_rows - t * QH_TILE < QH_TILE ? n_rows - t * QH_TILE : QH_TILE;
        uint16_t sums[QH_TILE] = {0}, nearest = 0;
        for (size_t from = 0, step; from < search->n_bytes && nearest <= selection->limit; from += step) {
            const size_t left = search->n_bytes - from;
            const qh_probe part = {whole->spread + from, whole->tables + 32 * from, 255}, *probe = &part;
            const size_t wanted = from || search->stage > QH_NARROW || !search->stage ? 16 : search->stage;
            step = wanted < left ? wanted : left;
            search->kernel->hamming(tile + from * QH_TILE, 1, stride, step, step, &probe, 1, mask, lanes);
            for (int i = 0; i < QH_TILE; i++) sums[i] = (uint16_t)(sums[i] + lanes[i]);
            nearest = UINT16_MAX;
            for (int i = 0; i < QH_TILE; i++) nearest = sums[i] < nearest ? sums[i] : nearest;
        }
        if (nearest > selection->limit) continue;
        for (size_t lane = 0; lane < n_lanes; lane++)
            if (sums[lane] <= selection->limit &&
                qh_add_hit(selection, segment, number, (first_tile + t) * QH_TILE + lane, sums[lane]))
                return QH_NO_MEMORY;
    }
    return QH_OK;
}

/* ---- one segment ---- */

/* Bytes after which a tile is likely to be beyond all limits: 4 bits a byte differ between codes that have nothing to do
 * with each other, with a deviation of sqrt(2) bits. The lanes of a tile, sorted, share their first bits and leave together. */
static size_t early_bytes(unsigned limit, size_t n_bytes)
{
    for (size_t j = 1; j + 1 < n_bytes; j++) {
        const double margin = 4.0 * (double)j - limit - 0.5;
        if (margin > 0 && margin * margin >= DEVIATIONS * DEVIATIONS * 2.0 * (double)j) return j;
    }
    return n_bytes;
}

/* Whether 64 bytes are all the same. */
static int is_uniform(const uint8_t *plane)
{
    uint64_t first, word, differing = 0;
    memcpy(&first, plane, 8);
    for (size_t i = 8; i < QH_TILE; i += 8) {
        memcpy(&word, plane + i, 8);
        differing |= word ^ first;
    }
    return !differing && first == 0x0101010101010101u * (first & 255);
}

/* Tiles that are walked together, at most `most`: those whose rows all have the same first byte, as rows that are sorted
 * have, or those of which none is so. */
static size_t tiles_alike(const uint8_t *tiles, size_t most, size_t stride)
{
    const int is_alike = is_uniform(tiles);
    size_t n = 1;
    for (; n < most; n++) {
        const uint8_t *plane = tiles + n * stride;
        if (is_uniform(plane) != is_alike || (is_alike && *plane != *tiles)) break;
    }
    return n;
}

/* First bytes that all rows have alike; one byte is left in any case. */
static size_t shared_bytes(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes)
{
    size_t j = 0, t;
    for (; j + 1 < n_bytes; j++) {
        const uint8_t *plane = tiles + j * QH_TILE;
        for (t = 0; t < n_tiles && plane[t * stride] == *plane && is_uniform(plane + t * stride); t++) continue;
        if (t < n_tiles) break;
    }
    return j;
}

typedef struct { /* a query that has a chance in a run */
    size_t query;
    unsigned base, rest; /* its distance in the shared bytes, and what its limit leaves for the others */
} chance;

/* Queries whose limits leave the same go through a tile together: it is left early only when it is beyond all of them. */
static size_t find_chances(const chunk *given, const uint8_t *is_wanted, const uint8_t *tile, size_t n_shared,
                           chance *sorted)
{
    chance found[CHUNK];
    uint8_t starts[258] = {0};
    size_t n = 0;
    for (size_t q = 0; q < given->n_queries; q++) {
        const unsigned limit = given->selections[q].limit;
        unsigned base = 0;
        if (!is_wanted[q]) continue;
        for (size_t j = 0; j < n_shared; j++) {
            const uint8_t byte = tile[j * QH_TILE], *table = given->probes[q].tables + 32 * j;
            base += table[byte & 15] + table[16 + (byte >> 4)];
        }
        if (base > limit) continue;
        found[n] = (chance){q, base, limit - base < 255 ? limit - base : 255};
        starts[found[n++].rest + 1]++;
    }
    for (size_t rest = 1; rest < 257; rest++) starts[rest] = (uint8_t)(starts[rest] + starts[rest - 1]);
    for (size_t i = 0; i < n; i++) sorted[starts[found[i].rest]++] = found[i];
    return n;
}

static int scan_segment(const qh_search *search, chunk *given, size_t number, const uint8_t *is_wanted)
{
    const qh_segment *segment = &search->segments[number];
    const size_t stride = search->n_bytes * QH_TILE, all_tiles = (segment->n_rows + QH_TILE - 1) / QH_TILE;
    const int is_staged = search->stage || search->n_bytes > QH_NARROW;
    uint64_t masks[QH_GROUP * QH_RUN];
    uint8_t distances[QH_GROUP * QH_RUN * QH_TILE];
    chance chances[CHUNK];
    make_probes(search, given);
    for (size_t first = 0, n_tiles; first < all_tiles; first += n_tiles) {
        const uint8_t *tiles = segment->tiles + first * stride;
        const size_t left = all_tiles - first, most = left < QH_RUN ? left : QH_RUN;
        n_tiles = is_staged ? most : tiles_alike(tiles, most, stride);
        const size_t n_rows = n_tiles < left ? n_tiles * QH_TILE : segment->n_rows - first * QH_TILE;
        const size_t n_shared = is_staged ? 0 : shared_bytes(tiles, n_tiles, stride, search->n_bytes);
        const size_t n_left = search->n_bytes - n_shared;
        const size_t n_chances = find_chances(given, is_wanted, tiles, n_shared, chances);
        for (size_t from = 0; from < n_chances; from += QH_GROUP) {
            const size_t n_probes = n_chances - from < QH_GROUP ? n_chances - from : QH_GROUP;
            const chance *taken = chances + from;
            qh_probe parts[QH_GROUP];
            const qh_probe *probes[QH_GROUP];
            unsigned any = 0;
            for (size_t p = 0; p < n_probes; p++) {
                const qh_probe *whole = &given->probes[taken[p].query];
                parts[p] = (qh_probe){whole->spread + n_shared, whole->tables + 32 * n_shared, taken[p].rest};
                probes[p] = &parts[p];
            }
            if (!is_staged)
                any = search->kernel->hamming(tiles + n_shared * QH_TILE, n_tiles, stride, n_left,
                                              early_bytes(taken[n_probes - 1].rest, n_left), probes, n_probes, masks,
                                              distances);
            for (size_t p = 0; p < n_probes; p++) {
                qh_selection *selection = &given->selections[taken[p].query];
                int problem = QH_OK;
                if (is_staged)
                    problem = take_staged(search, selection, probes[p], number, first, n_tiles, n_rows);
                else if (any >> p & 1)
                    problem = take_hits(selection, segment, number, first, n_rows, masks + p * QH_RUN,
                                        distances + p * QH_RUN * QH_TILE, taken[p].base);
                if (problem) return problem;
            }
        }
    }
    return QH_OK;
}

/* Tile of the first row that is not before the query. */
size_t qh_home_tile(const qh_segment *segment, size_t n_bytes, const uint8_t *query)
{
    size_t low = 0, high = (segment->n_rows + QH_TILE - 1) / QH_TILE;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        const uint8_t *tile = segment->tiles + middle * n_bytes * QH_TILE;
        size_t j = 0;
        while (j + 1 < n_bytes && tile[j * QH_TILE] == query[j]) j++;
        if (tile[j * QH_TILE] <= query[j]) low = middle;
        else high = middle;
    }
    return low;
}

static int by_place(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Bits to turn round: none for bands, which find near codes by themselves, and few where a scan is soon done. */
static size_t n_turned(const qh_segment *segment)
{
    const size_t n = segment->n_rows / (128 * WINDOW * QH_TILE);
    return segment->bands ? 0 : n < MOST_TURNED ? n : MOST_TURNED;
}

/* Where the codes stand that share the query's first bits, all or all but one; rising, some of them twice. */
static size_t find_windows(const qh_segment *segment, size_t n_bytes, const uint8_t *query, size_t *places)
{
    const size_t most = n_turned(segment);
    size_t n = 0;
    uint8_t turned[QH_MAX_BYTES];
    memcpy(turned, query, n_bytes);
    places[n++] = qh_home_tile(segment, n_bytes, query);
    while (n <= most && n <= 8 * n_bytes) {
        const size_t bit = n - 1;
        turned[bit / 8] ^= (uint8_t)(128 >> bit % 8);
        places[n++] = qh_home_tile(segment, n_bytes, turned);
        turned[bit / 8] ^= (uint8_t)(128 >> bit % 8);
    }
    qsort(places, n, sizeof *places, by_place);
    return n;
}

/* A first limit, from codes that stand, in lexicographic order, where near ones are likely. */
static void seed_limit(const qh_search *search, chunk *given, size_t number)
{
    const qh_segment *segment = &search->segments[number];
    const size_t stride = search->n_bytes * QH_TILE, n_whole = segment->n_rows / QH_TILE; /* whole tiles */
    const size_t n_tiles = n_turned(segment) ? WINDOW : QH_RUN;
    uint64_t masks[QH_RUN];
    uint8_t distances[QH_RUN * QH_TILE];
    size_t places[MOST_TURNED + 1];
    if (segment->allowed || segment->n_rows < 4 * QH_RUN * QH_TILE || search->n_bytes > QH_NARROW) return;
    make_probes(search, given);
    for (size_t q = 0; q < given->n_queries; q++) {
        const size_t n_places = find_windows(segment, search->n_bytes, given->queries + q * search->n_bytes, places);
        qh_probe part = given->probes[q];
        const qh_probe *probe = &part;
        size_t counts[256] = {0}, next = 0; /* next: no row is counted twice */
        for (size_t i = 0; i < n_places; i++) {
            const size_t begin = places[i] < n_tiles / 2 ? 0 : places[i] - n_tiles / 2;
            const size_t first = begin > next ? begin : next;
            const size_t end = begin + n_tiles < n_whole ? begin + n_tiles : n_whole;
            if (first >= end) continue;
            next = end;
            part.limit = given->selections[q].limit < 255 ? given->selections[q].limit : 255;
            if (!search->kernel->hamming(segment->tiles + first * stride, end - first, stride, search->n_bytes,
                                         search->n_bytes, &probe, 1, masks, distances))
                continue;
            count_lanes(counts, masks, end - first, distances);
            tighten(&given->selections[q], counts, 0);
        }
    }
}

static int search_chunk(qh_search *search, chunk *given, int is_seeded)
{
    size_t largest = 0;
    for (size_t s = 1; s < search->n_segments; s++)
        if (search->segments[s].n_rows > search->segments[largest].n_rows) largest = s;
    if (is_seeded && search->n_segments) seed_limit(search, given, largest);
    for (size_t i = 0; i < search->n_segments; i++) {
        const size_t number = i == 0 ? largest : i <= largest ? i - 1 : i;
        uint8_t is_wanted[CHUNK];
        size_t n_wanted = 0;
        if (!search->segments[number].n_rows) continue;
        for (size_t q = 0; q < given->n_queries; q++) {
            int done = 0;
            if (search->segments[number].bands) {
                if (q + 2 * LATER < given->n_queries)
                    qh_look_ahead(search, number, given->queries + (q + 2 * LATER) * search->n_bytes, 0);
                if (q + LATER < given->n_queries)
                    qh_look_ahead(search, number, given->queries + (q + LATER) * search->n_bytes, 1);
                done = qh_look_up(search, number, given->queries + q * search->n_bytes, &given->selections[q]);
                if (done < 0) return done;
            }
            is_wanted[q] = !done;
            n_wanted += !done;
        }
        search->n_scanned += n_wanted;
        search->n_looked_up += given->n_queries - n_wanted;
        if (n_wanted) {
            const int problem = scan_segment(search, given, number, is_wanted);
            if (problem) return problem;
        }
    }
    return QH_OK;
}

static chunk *chunk_new(const qh_search *search, size_t n_queries)
{
    const size_t n = (n_queries < CHUNK ? n_queries : CHUNK) * search->n_bytes;
    chunk *given = calloc(1, sizeof *given);
    if (!given) return NULL;
    given->spread = malloc(n * sizeof *given->spread + 1);
    given->tables = malloc(n * 32 + 1);
    if (given->spread && given->tables) return given;
    free(given->spread);
    free(given->tables);
    free(given);
    return NULL;
}

static int chunk_begin(const qh_search *search, chunk *given, const uint8_t *queries, size_t n_queries, size_t k,
                       unsigned limit)
{
    given->queries = queries;
    given->n_queries = n_queries;
    given->n_probes = 0;
    for (size_t q = 0; q < n_queries; q++)
        if (selection_reset(&given->selections[q], search->n_bits, k, limit)) return QH_NO_MEMORY;
    return QH_OK;
}

static void chunk_free(chunk *given)
{
    for (size_t q = 0; given && q < CHUNK; q++) {
        free(given->selections[q].counts);
        free(given->selections[q].hits);
    }
    if (given) {
        free(given->spread);
        free(given->tables);
    }
    free(given);
}

int qh_nearest(qh_search *search, const uint8_t *queries, size_t n_queries, size_t k, int64_t *ids,
               uint16_t *distances)
{
    chunk *given = chunk_new(search, n_queries);
    int problem = given ? QH_OK : QH_NO_MEMORY;
    for (size_t from = 0; !problem && from < n_queries; from += CHUNK) {
        const size_t n = n_queries - from < CHUNK ? n_queries - from : CHUNK;
        problem = chunk_begin(search, given, queries + from * search->n_bytes, n, k, (unsigned)search->n_bits);
        if (!problem) problem = search_chunk(search, given, 1);
        for (size_t q = 0; !problem && q < n; q++)
            problem = write_out(search, &given->selections[q], k, ids + (from + q) * k, distances + (from + q) * k);
    }
    chunk_free(given);
    return problem;
}

static int found_reserve(qh_found *found, size_t n)
{
    if (found->n + n <= found->capacity) return QH_OK;
    const size_t capacity = 2 * (found->n + n);
    int64_t *ids = realloc(found->ids, capacity * sizeof *ids);
    if (!ids) return QH_NO_MEMORY;
    found->ids = ids;
    uint16_t *distances = realloc(found->distances, capacity * sizeof *distances);
    if (!distances) return QH_NO_MEMORY;
    found->distances = distances;
    found->capacity = capacity;
    return QH_OK;
}

int qh_within(qh_search *search, const uint8_t *queries, size_t n_queries, unsigned radius, int64_t *offsets,
              qh_found *found)
{
    chunk *given = chunk_new(search, n_queries);
    int problem = given ? QH_OK : QH_NO_MEMORY;
    offsets[0] = 0;
    for (size_t from = 0; !problem && from < n_queries; from += CHUNK) {
        const size_t n = n_queries - from < CHUNK ? n_queries - from : CHUNK;
        problem = chunk_begin(search, given, queries + from * search->n_bytes, n, QH_EVERYTHING, radius);
        if (!problem) problem = search_chunk(search, given, 0);
        for (size_t q = 0; !problem && q < n; q++) count_hits(search, &given->selections[q]);
        for (size_t q = 0; !problem && q < n; q++) {
            const size_t n_within = given->selections[q].n_within;
            problem = found_reserve(found, n_within);
            if (problem) break;
            if (n_within)
                problem = write_out(search, &given->selections[q], n_within, found->ids + found->n,
                                    found->distances + found->n);
            found->n += n_within;
            offsets[from + q + 1] = (int64_t)found->n;
        }
    }
    chunk_free(given);
    return problem;
}
