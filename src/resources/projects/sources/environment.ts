/** Variables that berth was started with. */
export type ProcessEnvironment = Readonly<Record<string, string | undefined>>

/** Looks up all addresses of a name; rejects or gives none if it does not resolve. */
export type ResolveHost = (name: string) => Promise<string[]>

/**
 * Reports whether the environment's variables name a proxy for https URLs of a host. `no_proxy` lists exempt hosts and
 * domains, `*` for all, as in curl.
 */
export function usesProxy(environment: ProcessEnvironment, host: string): boolean {
  const { https_proxy, HTTPS_PROXY, all_proxy, ALL_PROXY, no_proxy, NO_PROXY } = environment
  if (!(https_proxy || HTTPS_PROXY || all_proxy || ALL_PROXY)) return false
  const exempt = (no_proxy || NO_PROXY || '')
    .split(/[\s,]+/)
    .map((name) => name.toLowerCase().replace(/^\.|\.$/g, ''))
  return !exempt.some((name) => name !== '' && (name === '*' || host === name || host.endsWith(`.${name}`)))
}
