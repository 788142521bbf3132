/* Exact search among binary codes: what the C files share.
 *
 * A code of n_bits bits is n_bytes bytes, first bit highest. Codes lie in tiles of 64, byte-sliced: a tile is n_bytes
 * planes of 64 bytes, plane j holding byte j of each of its codes, so that one vector holds the same byte of many codes
 * and distances add up in byte lanes without a shuffle, whatever n_bits is. Rows past the last code are zero.
 */
#ifndef QUORUMHASH_HAMMING_H
#define QUORUMHASH_HAMMING_H

#include "sweep.h"

#include <stddef.h>
#include <stdint.h>

#define QH_TILE 64          /* codes a tile */
#define QH_GROUP 4          /* queries that a kernel takes through a tile together */
#define QH_RUN 32           /* tiles a kernel walks before hits are looked at: 16 kB of 64-bit codes */
#define QH_AHEAD 8          /* tiles that are fetched ahead for a single query */
#define QH_NARROW 31        /* bytes whose distance, at most 248, fits a byte lane */
#define QH_EVERYTHING SIZE_MAX /* k of a search by radius */
#define QH_MAX_BYTES 128
#define QH_MAX_BANDS 128

#if defined(__GNUC__)
#define QH_INLINE static inline __attribute__((always_inline))
#define QH_PREFETCH(address) __builtin_prefetch(address)
static inline int qh_lowest(uint64_t mask) { return __builtin_ctzll(mask); }
#else
#define QH_INLINE static inline
#define QH_PREFETCH(address) ((void)(address))
static inline int qh_lowest(uint64_t mask) { int i = 0; while (!(mask & 1)) { mask >>= 1; i++; } return i; }
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#define QH_X86 1
#endif
#if defined(__GNUC__) && defined(__aarch64__)
#define QH_NEON 1
#endif

/* One query as the kernels read it. */
typedef struct {
    const uint32_t *spread; /* (n_bytes) each byte of the query four times: one load fills a vector */
    const uint8_t *tables;  /* (n_bytes, 2, 16) what the low and the high half of a byte cost, in bits or in steps */
    unsigned limit;         /* lanes up to this are hits, at most 255 */
} qh_probe;

/* Walk n_tiles tiles of `stride` bytes for n_probes queries: per query the hits of a tile as 64 bits, and their distances.
 * masks is (n_probes, QH_RUN), distances (n_probes, QH_RUN * QH_TILE), written where there are hits. Distances stop at 255.
 * A tile in which every code is beyond its limit after `early` bytes is left there; early = n_bytes: never.
 * Tells which queries have hits, one bit each. */
typedef unsigned qh_run(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes, size_t early,
                        const qh_probe *const *probes, size_t n_probes, uint64_t *masks, uint8_t *distances);

/* Which of n <= 64 words differ from the query in at most `limit` bits: one bit each, the first lowest. */
typedef uint64_t qh_near_words(const uint64_t *words, size_t n, uint64_t query, unsigned limit);

typedef struct {
    const char *name;
    qh_run *hamming;  /* by popcount of the XOR; n_bytes <= QH_NARROW */
    qh_run *weighted; /* by the tables, any n_bytes */
    qh_near_words *near_words;
    int has_popcount; /* whether one instruction counts the bits of a word */
    qh_sweep_rows *sweep;
} qh_kernel;

qh_near_words qh_near_words_portable, qh_near_words_neon, qh_near_words_avx2, qh_near_words_avx512;

QH_INLINE unsigned qh_ones_by_halves(uint64_t x)
{
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    return (unsigned)((((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u) >> 56);
}

/* Kernels this processor can run, the fastest first; the last is portable C. */
size_t qh_kernels(const qh_kernel *found[4]);

/* Multi-index hashing of one segment: per band the rows in the order of that band's bits. */
typedef struct {
    size_t n_bands, n_words;          /* n_words: 64-bit words a code */
    uint32_t start[QH_MAX_BANDS], width[QH_MAX_BANDS];
    const uint32_t *offsets[QH_MAX_BANDS]; /* (2 ** width + 1) where each value's rows begin */
    const uint32_t *rows[QH_MAX_BANDS];    /* (n_rows) */
    const uint64_t *codes[QH_MAX_BANDS];   /* n_words == 1: (n_rows) in the order of rows; else the same table, by row */
} qh_bands;

/* A part of the table: distinct codes in lexicographic order, each with the ids of its items in rising order; or, where
 * ids run on without a gap, all codes in the order of their ids. (Answers depend on no order of codes, only speed does.) */
typedef struct {
    size_t n_rows;
    const uint8_t *tiles;
    const uint32_t *offsets; /* (n_rows + 1) into ids; NULL: one item a row */
    const int64_t *ids;      /* NULL: item i has the id first_id + i */
    int64_t first_id;
    const uint8_t *allowed;  /* (n_items) 0 where an item is removed or filtered out; NULL: all are there */
    const qh_bands *bands;   /* NULL: the segment is scanned */
} qh_segment;

static inline int64_t qh_id(const qh_segment *segment, size_t item)
{
    return segment->ids ? segment->ids[item] : segment->first_id + (int64_t)item;
}

typedef struct {
    const qh_kernel *kernel;
    const qh_segment *segments;
    size_t n_segments, n_bits, n_bytes;
    size_t stage;       /* bytes to look at before a tile is given up; 0: all at once */
    double scan_cost;   /* nanoseconds a row; negative: never scan where there are bands */
    double look_up_cost, candidate_cost; /* nanoseconds a value of a band looked up, and a row met there */
    size_t n_scanned, n_looked_up; /* told back: (query, segment) pairs answered by a scan, by bands */
} qh_search;

typedef struct { /* an array that grows */
    size_t n, capacity;
    int64_t *ids;
    uint16_t *distances;
} qh_found;

typedef struct { uint32_t row; uint16_t distance, segment; } qh_hit;

/* Counting selection: distances are small whole numbers, so a count per distance gives the k-th one without a heap. */
typedef struct {
    size_t k, n_within;  /* n_within: items found so far at distances up to limit */
    unsigned limit;      /* no item beyond it can be among the k nearest */
    size_t *counts;      /* (n_bits + 1) items found at each distance */
    qh_hit *hits;
    size_t n_hits, capacity;
} qh_selection;

enum { QH_OK = 0, QH_NO_MEMORY = -1, QH_TOO_FEW = -2 };

int qh_add_hit(qh_selection *selection, const qh_segment *segment, size_t number, size_t row, unsigned distance);
void qh_forget_hits(qh_selection *selection, const qh_segment *segment, size_t first_hit);

/* The tile among whose codes the query would stand. */
size_t qh_home_tile(const qh_segment *segment, size_t n_bytes, const uint8_t *query);

/* 1: done by the bands; 0: a scan is cheaper; < 0: an error. */
int qh_look_up(const qh_search *search, size_t number, const uint8_t *query, qh_selection *selection);
void qh_look_ahead(const qh_search *search, size_t number, const uint8_t *query, int has_offsets);
void qh_fill_band(const uint64_t *words, size_t n_rows, size_t n_words, uint32_t start, uint32_t width,
                  uint32_t *offsets, uint32_t *rows, uint64_t *codes);

int qh_nearest(qh_search *search, const uint8_t *queries, size_t n_queries, size_t k, int64_t *ids,
               uint16_t *distances);
int qh_within(qh_search *search, const uint8_t *queries, size_t n_queries, unsigned radius, int64_t *offsets,
              qh_found *found);
int qh_ranked(qh_search *search, const uint8_t *queries, const double *tables, size_t n_queries, size_t k,
              int64_t *ids, double *costs, uint16_t *distances);

#endif
