/* The innermost loops, once per family of processors, and the choice among them. */
#include "hamming.h"

#include <string.h>

/* ---- portable C: eight lanes a word, counted by halves; compilers make vectors of it ---- */

static unsigned nearest_lane(const uint8_t *distances)
{
    uint8_t nearest = 255;
    for (int i = 0; i < QH_TILE; i++) nearest = distances[i] < nearest ? distances[i] : nearest;
    return nearest;
}

static uint64_t lanes_up_to(const uint8_t *distances, unsigned limit)
{
    uint64_t mask = 0;
    if (nearest_lane(distances) > limit) return 0;
    for (int i = 0; i < QH_TILE; i++) mask |= (uint64_t)(distances[i] <= limit) << i;
    return mask;
}

static unsigned portable_hamming(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes, size_t early,
                                 const qh_probe *const *probes, size_t n_probes, uint64_t *masks, uint8_t *distances)
{
    unsigned any = 0;
    const uint64_t ones = 0x5555555555555555u, twos = 0x3333333333333333u, fours = 0x0f0f0f0f0f0f0f0fu;
    for (size_t t = 0; t < n_tiles; t++)
        for (size_t p = 0; p < n_probes; p++) {
            uint8_t *lanes = distances + (p * QH_RUN + t) * QH_TILE;
            uint64_t sums[QH_TILE / 8] = {0};
            for (size_t j = 0; j < n_bytes; j++) {
                uint64_t plane[QH_TILE / 8], query = probes[p]->spread[j];
                query |= query << 32;
                memcpy(plane, tiles + t * stride + j * QH_TILE, QH_TILE);
                for (int i = 0; i < QH_TILE / 8; i++) {
                    uint64_t x = plane[i] ^ query;
                    x -= (x >> 1) & ones;
                    x = (x & twos) + ((x >> 2) & twos);
                    sums[i] += (x + (x >> 4)) & fours;
                }
                if (j + 1 == early) {
                    memcpy(lanes, sums, QH_TILE);
                    if (nearest_lane(lanes) > probes[p]->limit) break;
                }
            }
            memcpy(lanes, sums, QH_TILE);
            masks[p * QH_RUN + t] = lanes_up_to(lanes, probes[p]->limit);
            any |= (unsigned)(masks[p * QH_RUN + t] != 0) << p;
        }
    return any;
}

static unsigned portable_weighted(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes, size_t early,
                                  const qh_probe *const *probes, size_t n_probes, uint64_t *masks, uint8_t *distances)
{
    unsigned any = 0;
    (void)early;
    for (size_t t = 0; t < n_tiles; t++)
        for (size_t p = 0; p < n_probes; p++) {
            uint32_t sums[QH_TILE] = {0};
            for (size_t j = 0; j < n_bytes; j++) {
                const uint8_t *plane = tiles + t * stride + j * QH_TILE, *table = probes[p]->tables + j * 32;
                for (int i = 0; i < QH_TILE; i++) sums[i] += table[plane[i] & 15] + table[16 + (plane[i] >> 4)];
            }
            uint8_t *lanes = distances + (p * QH_RUN + t) * QH_TILE;
            for (int i = 0; i < QH_TILE; i++) lanes[i] = (uint8_t)(sums[i] < 255 ? sums[i] : 255);
            masks[p * QH_RUN + t] = lanes_up_to(lanes, probes[p]->limit);
            any |= (unsigned)(masks[p * QH_RUN + t] != 0) << p;
        }
    return any;
}

static const qh_kernel portable = {"portable", portable_hamming, portable_weighted, qh_near_words_portable, 0,
                                   qh_sweep_portable};

#ifdef QH_X86
#include <immintrin.h>

/* ---- AVX2: a shuffle is a table of 16 entries. Splitting bytes into halves is shared by the queries of a group. ---- */

#define QH_AVX2 __attribute__((target("avx2,popcnt")))

QH_INLINE QH_AVX2 void avx2_planes(const uint8_t *tile, size_t from, size_t to, const qh_probe *const *probes,
                                   const size_t n_probes, size_t ahead, __m256i *left, __m256i *right)
{
    const __m256i low = _mm256_set1_epi8(15);
    for (size_t j = from; j < to; j++) {
        if (n_probes < QH_GROUP) QH_PREFETCH(tile + j * QH_TILE + ahead); /* few queries: memory is what they wait for */
        const __m256i a = _mm256_loadu_si256((const __m256i *)(tile + j * QH_TILE));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(tile + j * QH_TILE + 32));
        const __m256i a_low = _mm256_and_si256(a, low), a_high = _mm256_and_si256(_mm256_srli_epi16(a, 4), low);
        const __m256i b_low = _mm256_and_si256(b, low), b_high = _mm256_and_si256(_mm256_srli_epi16(b, 4), low);
        for (size_t p = 0; p < n_probes; p++) {
            const __m128i *table = (const __m128i *)(probes[p]->tables + j * 32);
            const __m256i of_low = _mm256_broadcastsi128_si256(_mm_loadu_si128(table));
            left[p] = _mm256_adds_epu8(left[p], _mm256_shuffle_epi8(of_low, a_low));
            right[p] = _mm256_adds_epu8(right[p], _mm256_shuffle_epi8(of_low, b_low));
            const __m256i of_high = _mm256_broadcastsi128_si256(_mm_loadu_si128(table + 1));
            left[p] = _mm256_adds_epu8(left[p], _mm256_shuffle_epi8(of_high, a_high));
            right[p] = _mm256_adds_epu8(right[p], _mm256_shuffle_epi8(of_high, b_high));
        }
    }
}

QH_INLINE QH_AVX2 unsigned avx2_tiles(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes, size_t early,
                                      const qh_probe *const *probes, const size_t n_probes, uint64_t *masks,
                                      uint8_t *distances)
{
    const __m256i ones = _mm256_set1_epi8(-1);
    __m256i begin[QH_GROUP];
    unsigned any = 0, open = 0; /* open: a limit of 255, within which every lane is */
    for (size_t p = 0; p < n_probes; p++) {
        open |= (unsigned)(probes[p]->limit >= 255) << p;
        begin[p] = _mm256_set1_epi8((char)(probes[p]->limit < 254 ? 254 - probes[p]->limit : 0));
        memset(masks + p * QH_RUN, 0, n_tiles * sizeof *masks);
    }
    for (size_t t = 0; t < n_tiles; t++) {
        const uint8_t *tile = tiles + t * stride;
        __m256i left[QH_GROUP], right[QH_GROUP], beyond = ones;
        for (size_t p = 0; p < n_probes; p++) left[p] = right[p] = begin[p];
        avx2_planes(tile, 0, early, probes, n_probes, QH_AHEAD * stride, left, right);
        for (size_t p = 0; p < n_probes; p++)
            beyond = _mm256_and_si256(beyond, _mm256_and_si256(left[p], right[p]));
        if (_mm256_testc_si256(beyond, ones) && !open) continue;
        if (early < n_bytes) avx2_planes(tile, early, n_bytes, probes, n_probes, QH_AHEAD * stride, left, right);
        for (size_t p = 0; p < n_probes; p++) {
            uint8_t *lanes = distances + (p * QH_RUN + t) * QH_TILE;
            const uint32_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(left[p], ones));
            const uint32_t high = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(right[p], ones));
            const uint64_t mask = open >> p & 1 ? ~(uint64_t)0 : ~(low | (uint64_t)high << 32);
            if (!mask) continue;
            _mm256_storeu_si256((__m256i *)lanes, _mm256_sub_epi8(left[p], begin[p]));
            _mm256_storeu_si256((__m256i *)(lanes + 32), _mm256_sub_epi8(right[p], begin[p]));
            masks[p * QH_RUN + t] = mask;
            any |= 1u << p;
        }
    }
    return any;
}

QH_AVX2 static unsigned avx2_weighted(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes, size_t early,
                                      const qh_probe *const *probes, size_t n_probes, uint64_t *masks,
                                      uint8_t *distances)
{
    switch (n_probes) { /* a count the compiler knows keeps the sums in registers */
    case 1: return avx2_tiles(tiles, n_tiles, stride, n_bytes, early, probes, 1, masks, distances);
    case 2: return avx2_tiles(tiles, n_tiles, stride, n_bytes, early, probes, 2, masks, distances);
    case 3: return avx2_tiles(tiles, n_tiles, stride, n_bytes, early, probes, 3, masks, distances);
    default: return avx2_tiles(tiles, n_tiles, stride, n_bytes, early, probes, QH_GROUP, masks, distances);
    }
}

static const qh_kernel avx2 = {"avx2", avx2_weighted, avx2_weighted, qh_near_words_avx2, 1, qh_sweep_avx2};

/* ---- AVX-512: one instruction counts the bits of 64 bytes ---- */

#define QH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vpopcntdq,avx512bitalg,popcnt")))

QH_INLINE QH_AVX512 void avx512_planes(const uint8_t *tile, size_t from, size_t to, const qh_probe *const *probes,
                                       const size_t n_probes, size_t ahead, __m512i *sums, const int by_tables)
{
    const __m512i low = _mm512_set1_epi8(15);
    for (size_t j = from; j < to; j++) {
        if (n_probes < QH_GROUP) QH_PREFETCH(tile + j * QH_TILE + ahead);
        const __m512i plane = _mm512_loadu_si512(tile + j * QH_TILE);
        const __m512i lows = _mm512_and_si512(plane, low);
        const __m512i highs = _mm512_and_si512(_mm512_srli_epi16(plane, 4), low);
        for (size_t p = 0; p < n_probes; p++) {
            if (by_tables) {
                const __m128i *table = (const __m128i *)(probes[p]->tables + j * 32);
                const __m512i of_low = _mm512_broadcast_i32x4(_mm_loadu_si128(table));
                const __m512i of_high = _mm512_broadcast_i32x4(_mm_loadu_si128(table + 1));
                sums[p] = _mm512_adds_epu8(sums[p], _mm512_shuffle_epi8(of_low, lows));
                sums[p] = _mm512_adds_epu8(sums[p], _mm512_shuffle_epi8(of_high, highs));
            } else {
                const __m512i differing = _mm512_xor_si512(plane, _mm512_set1_epi32((int)probes[p]->spread[j]));
                sums[p] = _mm512_add_epi8(sums[p], _mm512_popcnt_epi8(differing));
            }
        }
    }
}

QH_INLINE QH_AVX512 unsigned avx512_tiles(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes,
                                          size_t early, const qh_probe *const *probes, const size_t n_probes,
                                          uint64_t *masks, uint8_t *distances, const int by_tables)
{
    unsigned any = 0;
    __m512i limits[QH_GROUP];
    for (size_t p = 0; p < n_probes; p++) limits[p] = _mm512_set1_epi8((char)probes[p]->limit);
    for (size_t t = 0; t < n_tiles; t++) {
        const uint8_t *tile = tiles + t * stride;
        __m512i sums[QH_GROUP];
        uint64_t near = 0;
        for (size_t p = 0; p < n_probes; p++) sums[p] = _mm512_setzero_si512();
        avx512_planes(tile, 0, early, probes, n_probes, QH_AHEAD * stride, sums, by_tables);
        for (size_t p = 0; p < n_probes; p++) near |= _mm512_cmple_epu8_mask(sums[p], limits[p]);
        for (size_t p = 0; p < n_probes; p++) masks[p * QH_RUN + t] = 0;
        if (!near) continue;
        avx512_planes(tile, early, n_bytes, probes, n_probes, QH_AHEAD * stride, sums, by_tables);
        for (size_t p = 0; p < n_probes; p++) {
            const uint64_t mask = _mm512_cmple_epu8_mask(sums[p], limits[p]);
            if (!mask) continue;
            _mm512_storeu_si512(distances + (p * QH_RUN + t) * QH_TILE, sums[p]);
            masks[p * QH_RUN + t] = mask;
            any |= 1u << p;
        }
    }
    return any;
}

#define QH_AVX512_RUN(name, by_tables)                                                                               \
    QH_AVX512 static unsigned name(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes, size_t early, \
                                   const qh_probe *const *probes, size_t n_probes, uint64_t *masks,                  \
                                   uint8_t *distances)                                                               \
    {                                                                                                                \
        switch (n_probes) {                                                                                          \
        case 1: return avx512_tiles(tiles, n_tiles, stride, n_bytes, early, probes, 1, masks, distances, by_tables);  \
        case 2: return avx512_tiles(tiles, n_tiles, stride, n_bytes, early, probes, 2, masks, distances, by_tables);  \
        case 3: return avx512_tiles(tiles, n_tiles, stride, n_bytes, early, probes, 3, masks, distances, by_tables);  \
        default: return avx512_tiles(tiles, n_tiles, stride, n_bytes, early, probes, 4, masks, distances, by_tables); \
        }                                                                                                            \
    }

QH_AVX512_RUN(avx512_hamming, 0)
QH_AVX512_RUN(avx512_weighted, 1)

static const qh_kernel avx512 = {"avx512", avx512_hamming, avx512_weighted, qh_near_words_avx512, 1, qh_sweep_avx512};
#endif

#ifdef QH_NEON
#include <arm_neon.h>

/* ---- NEON: 16 lanes a vector, with an instruction for the bits of a byte and one for tables ---- */

static unsigned neon_nearest(const uint8x16_t *sums)
{
    return vminvq_u8(vminq_u8(vminq_u8(sums[0], sums[1]), vminq_u8(sums[2], sums[3])));
}

QH_INLINE unsigned neon_tiles(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes, size_t early,
                              const qh_probe *const *probes, size_t n_probes, uint64_t *masks, uint8_t *distances,
                              const int by_tables)
{
    unsigned any = 0;
    const uint8x16_t low = vdupq_n_u8(15);
    for (size_t t = 0; t < n_tiles; t++)
        for (size_t p = 0; p < n_probes; p++) {
            const uint8_t *tile = tiles + t * stride;
            uint8x16_t sums[4] = {vdupq_n_u8(0), vdupq_n_u8(0), vdupq_n_u8(0), vdupq_n_u8(0)};
            for (size_t j = 0; j < n_bytes; j++) {
                const uint8_t *table = probes[p]->tables + j * 32; /* a probe by tables has no spread bytes */
                const uint8x16_t query = by_tables ? low : vdupq_n_u8((uint8_t)probes[p]->spread[j]);
                const uint8x16_t of_low = vld1q_u8(table), of_high = vld1q_u8(table + 16);
                for (int i = 0; i < 4; i++) {
                    const uint8x16_t plane = vld1q_u8(tile + j * QH_TILE + 16 * i);
                    if (by_tables) {
                        sums[i] = vqaddq_u8(sums[i], vqtbl1q_u8(of_low, vandq_u8(plane, low)));
                        sums[i] = vqaddq_u8(sums[i], vqtbl1q_u8(of_high, vshrq_n_u8(plane, 4)));
                    } else {
                        sums[i] = vaddq_u8(sums[i], vcntq_u8(veorq_u8(plane, query)));
                    }
                }
                if (j + 1 == early && neon_nearest(sums) > probes[p]->limit) break;
            }
            uint8_t *lanes = distances + (p * QH_RUN + t) * QH_TILE;
            masks[p * QH_RUN + t] = 0;
            if (neon_nearest(sums) > probes[p]->limit) continue;
            for (int i = 0; i < 4; i++) vst1q_u8(lanes + 16 * i, sums[i]);
            masks[p * QH_RUN + t] = lanes_up_to(lanes, probes[p]->limit);
            any |= 1u << p;
        }
    return any;
}

static unsigned neon_hamming(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes, size_t early,
                             const qh_probe *const *probes, size_t n_probes, uint64_t *masks, uint8_t *distances)
{
    return neon_tiles(tiles, n_tiles, stride, n_bytes, early, probes, n_probes, masks, distances, 0);
}

static unsigned neon_weighted(const uint8_t *tiles, size_t n_tiles, size_t stride, size_t n_bytes, size_t early,
                              const qh_probe *const *probes, size_t n_probes, uint64_t *masks, uint8_t *distances)
{
    return neon_tiles(tiles, n_tiles, stride, n_bytes, early, probes, n_probes, masks, distances, 1);
}

static const qh_kernel neon = {"neon", neon_hamming, neon_weighted, qh_near_words_neon, 1, qh_sweep_portable};
#endif

size_t qh_kernels(const qh_kernel *found[4])
{
    size_t n = 0;
#ifdef QH_X86
    __builtin_cpu_init(); /* tells what the system saves on a switch, too */
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512bitalg"))
        found[n++] = &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt")) found[n++] = &avx2;
#endif
#ifdef QH_NEON
    found[n++] = &neon;
#endif
    found[n++] = &portable;
    return n;
}
