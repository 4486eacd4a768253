/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls and memory for a program without a C library. */
#ifndef UR_KEEPER_SYS_H
#define UR_KEEPER_SYS_H

#include <string.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}
__asm__(".globl _start\n_start:\n\txorl %ebp, %ebp\n\tandq $-16, %rsp\n\tcall keeper_main\n");
#elif defined(__aarch64__)
static inline long sys(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tb keeper_main\n");
#endif

#define SYS0(name) sys(SYS_##name, 0, 0, 0, 0, 0, 0)
#define SYS1(name, a) sys(SYS_##name, (long)(a), 0, 0, 0, 0, 0)
#define SYS2(name, a, b) sys(SYS_##name, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS3(name, a, b, c) sys(SYS_##name, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS4(name, a, b, c, d) sys(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS5(name, a, b, c, d, e) sys(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define SYS6(name, a, b, c, d, e, f) sys(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* The compiler calls these two for structures that it copies or clears. */
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	volatile unsigned char *t = to; /* or the loop becomes a call of itself */
	const unsigned char *f = from;

	while (n--)
		*t++ = *f++;
	return to;
}

void *memset(void *to, int c, size_t n)
{
	volatile unsigned char *t = to;

	while (n--)
		*t++ = (unsigned char)c;
	return to;
}

#endif
