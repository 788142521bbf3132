/* Which of a few neighbouring 64-bit codes are near a query: what a look-up in a band asks of the rows it meets. */
#include "hamming.h"

/* The plain form, into which the compiler puts whatever counts bits on the processor it is told of. */
#define QH_NEAR_WORDS(n_ones)                                                   \
    uint64_t mask = 0;                                                          \
    for (size_t i = 0; i < n; i++) mask |= (uint64_t)(n_ones(words[i] ^ query) <= limit) << i; \
    return mask

uint64_t qh_near_words_portable(const uint64_t *words, size_t n, uint64_t query, unsigned limit)
{
    QH_NEAR_WORDS(qh_ones_by_halves);
}

#ifdef QH_NEON
uint64_t qh_near_words_neon(const uint64_t *words, size_t n, uint64_t query, unsigned limit)
{
    QH_NEAR_WORDS((unsigned)__builtin_popcountll);
}
#endif

#ifdef QH_X86
#include <immintrin.h>

__attribute__((target("avx2,popcnt"))) uint64_t qh_near_words_avx2(const uint64_t *words, size_t n, uint64_t query,
                                                                    unsigned limit)
{
    const __m256i low = _mm256_set1_epi8(15), most = _mm256_set1_epi64x(limit), asked = _mm256_set1_epi64x((int64_t)query);
    const __m256i ones = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2,
                                          3, 2, 3, 3, 4);
    uint64_t beyond = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(words + i)), asked);
        const __m256i lows = _mm256_shuffle_epi8(ones, _mm256_and_si256(x, low));
        const __m256i highs = _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16(x, 4), low));
        const __m256i distances = _mm256_sad_epu8(_mm256_add_epi8(lows, highs), _mm256_setzero_si256());
        const __m256i far = _mm256_cmpgt_epi64(distances, most);
        beyond |= (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(far)) << i;
    }
    for (; i < n; i++) beyond |= (uint64_t)((unsigned)__builtin_popcountll(words[i] ^ query) > limit) << i;
    return ~beyond & (n < 64 ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0);
}

__attribute__((target("avx512f,avx512vpopcntdq"))) uint64_t qh_near_words_avx512(const uint64_t *words, size_t n,
                                                                                  uint64_t query, unsigned limit)
{
    const __m512i most = _mm512_set1_epi64(limit), asked = _mm512_set1_epi64((int64_t)query);
    uint64_t mask = 0;
    for (size_t i = 0; i < n; i += 8) {
        const __mmask8 there = n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : (__mmask8)255;
        const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi64(there, words + i), asked);
        mask |= (uint64_t)_mm512_mask_cmple_epu64_mask(there, _mm512_popcnt_epi64(x), most) << i;
    }
    return mask;
}
#endif
