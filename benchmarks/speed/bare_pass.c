/* A bare pass over 64-bit codes: the sum of the distances to one query, and nothing else; what a scan is measured by. */
#include <stddef.h>
#include <stdint.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__) && defined(__AVX512VPOPCNTDQ__)
uint64_t bare_pass(const uint64_t *codes, size_t n, uint64_t query)
{
    const __m512i q = _mm512_set1_epi64((long long)query);
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    size_t i = 0;
    uint64_t sum = 0;
    for (; i + 32 <= n; i += 32) {
        a = _mm512_add_epi64(a, _mm512_popcnt_epi64(_mm512_xor_si512(q, _mm512_loadu_si512(codes + i))));
        b = _mm512_add_epi64(b, _mm512_popcnt_epi64(_mm512_xor_si512(q, _mm512_loadu_si512(codes + i + 8))));
        c = _mm512_add_epi64(c, _mm512_popcnt_epi64(_mm512_xor_si512(q, _mm512_loadu_si512(codes + i + 16))));
        d = _mm512_add_epi64(d, _mm512_popcnt_epi64(_mm512_xor_si512(q, _mm512_loadu_si512(codes + i + 24))));
    }
    for (; i < n; i++) sum += (uint64_t)__builtin_popcountll(codes[i] ^ query);
    return sum + (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d)));
}
#elif defined(__AVX2__)
uint64_t bare_pass(const uint64_t *codes, size_t n, uint64_t query)
{
    const __m256i q = _mm256_set1_epi64x((long long)query), low = _mm256_set1_epi8(15);
    const __m256i ones = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3,
                                          2, 3, 3, 4);
    __m256i total = _mm256_setzero_si256();
    size_t i = 0;
    while (i + 4 <= n) { /* at most 31 vectors before the bytes could overflow */
        const size_t end = n - i < 124 ? i + (n - i) / 4 * 4 : i + 124;
        __m256i bytes = _mm256_setzero_si256();
        for (; i < end; i += 4) {
            const __m256i x = _mm256_xor_si256(q, _mm256_loadu_si256((const __m256i *)(codes + i)));
            bytes = _mm256_add_epi8(bytes, _mm256_shuffle_epi8(ones, _mm256_and_si256(x, low)));
            bytes = _mm256_add_epi8(bytes, _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16(x, 4), low)));
        }
        total = _mm256_add_epi64(total, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
    }
    uint64_t parts[4], sum = 0;
    _mm256_storeu_si256((__m256i *)parts, total);
    for (; i < n; i++) sum += (uint64_t)__builtin_popcountll(codes[i] ^ query);
    return sum + parts[0] + parts[1] + parts[2] + parts[3];
}
#else
uint64_t bare_pass(const uint64_t *codes, size_t n, uint64_t query)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += (uint64_t)__builtin_popcountll(codes[i] ^ query);
    return sum;
}
#endif
