import type { AnyElysia } from 'elysia'

/**
 * Composes the function that handles an app's requests, as its first request would do. Elysia then asks Bun to collect
 * garbage, which takes 3 ms of the first response; Bun collects garbage by itself. Elysia 1.4.30 does so in
 * `composeGeneralHandler`, whatever its options are.
 */
export function composeApp(app: AnyElysia): void {
  const { gc } = Bun
  Reflect.set(Bun, 'gc', () => {})
  try {
    void app.fetch
  } finally {
    Reflect.set(Bun, 'gc', gc)
  }
}
