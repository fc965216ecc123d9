let last = 10_000 + ((process.pid * 101) % 20_000)

/**
 * A port of 127.0.0.1 on which nobody listens, and which is given once. It lies below the ports that
 * the kernel hands to who asks for any, so that nothing that starts meanwhile gets it by chance.
 */
export function freePort(): number {
  for (;;) {
    last = last < 31_999 ? last + 1 : 10_000
    try {
      Bun.listen({ hostname: '127.0.0.1', port: last, socket: { data() {} } }).stop(true)
      return last
    } catch {
      // Another program has it.
    }
  }
}
