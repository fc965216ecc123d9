import type { PortRange } from '../../../config/config.ts'
import { messageOf } from '../../../runtime/error-info.ts'
import type { Namespaces } from './namespaces.ts'
import { OWN_IPV4, OWN_IPV6 } from './socket-calls.ts'

/** The port of 127.0.0.1 and ::1 to which connections to the outside are redirected. */
export const OUTBOUND_PORT = 65_535

/** The port of 127.0.0.1 and ::1 that takes connections to ports of projects; see `projectRules`. */
export const PROJECTS_PORT = 65_533

/** The mark (SO_MARK) of berth's own connections inside. They reach only what a program of the server listens on. */
export const OWN_MARK = 1

/** The port at which berth answers name look-ups, of `OWN_IPV4` and `OWN_IPV6`. */
export const DNS_PORT = 53

const PROXY = `http://127.0.0.1:${OUTBOUND_PORT}`

/** The variables by which programs find the way out where nothing is redirected. */
export const PROXY_ENVIRONMENT: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['http_proxy', 'https_proxy', 'all_proxy'].flatMap((name) => [
      [name, PROXY],
      [name.toUpperCase(), PROXY],
    ]),
  ),
  ...Object.fromEntries(['no_proxy', 'NO_PROXY'].map((name) => [name, 'localhost,.localhost,127.0.0.1,::1'])),
  NODE_USE_ENV_PROXY: '1',
}

/** Milliseconds after which the program that sets the rules is given up. */
const PATIENCE_MS = 10_000

/**
 * Rules for nft(8). Loopback is left alone, and not tracked: that costs time, and the kernel's memory. The rest is
 * redirected to berth, or refused. Each packet passes the rules, so what most of them match comes first.
 */
const RULES = `table inet berth {
  chain untracked {
    type filter hook output priority raw
    ip daddr 127.0.0.0/8 notrack accept
    ip6 daddr ::1 notrack accept
  }
  chain redirected {
    type nat hook output priority -100
    ip daddr 127.0.0.0/8 return
    ip6 daddr ::1 return
    udp dport ${DNS_PORT} redirect to :${DNS_PORT}
    ip daddr ${OWN_IPV4} tcp dport != ${DNS_PORT} return
    ip6 daddr ${OWN_IPV6} tcp dport != ${DNS_PORT} return
    meta l4proto tcp redirect to :${OUTBOUND_PORT}
  }
  chain refused {
    type filter hook output priority 0
    ip daddr 127.0.0.0/8 accept
    ip6 daddr ::1 accept
    ip daddr ${OWN_IPV4} accept
    ip6 daddr ${OWN_IPV6} accept
    reject
  }
}
`

/**
 * Returns rules for nft(8) that hand connections to a range of ports of loopback to the listener at `PROJECTS_PORT`,
 * one for the whole range. A port on which a program of the server listens stays that program's. Unlike a redirection
 * this needs no connection tracking, and the accepted socket has the address that was dialled.
 */
const projectRules = ({ first, last }: PortRange): string => `table inet berth {
  chain projects {
    type filter hook prerouting priority mangle
    tcp dport != ${first}-${last} accept
    meta mark ${OWN_MARK} accept
    tcp dport ${first}-${last} socket transparent 0 accept
    ip daddr 127.0.0.1 tcp dport ${first}-${last} tproxy ip to 127.0.0.1:${PROJECTS_PORT}
    ip6 daddr ::1 tcp dport ${first}-${last} tproxy ip6 to [::1]:${PROJECTS_PORT}
  }
}
`

/**
 * Redirects what leaves a network to `OUTBOUND_PORT` and `DNS_PORT`, by nft. That takes about 4 ms, in a process that
 * joins the namespaces.
 *
 * @param projects ports of loopback that are handed to `PROJECTS_PORT`; null for none
 * @param path the PATH that nsenter and nft are looked for in
 * @param signal ends the process
 * @returns null, or why nothing is redirected, for a person
 */
export async function redirectOutbound(
  { network, owner }: Namespaces,
  projects: PortRange | null,
  path: string,
  signal: AbortSignal,
): Promise<string | null> {
  const [nsenter, nft] = ['nsenter', 'nft'].map((name) =>
    Bun.which(name, { PATH: `${path}:/usr/sbin:/sbin` }),
  )
  if (!nsenter) return 'nsenter (package util-linux) is not installed.'
  if (!nft) return 'nft (package nftables) is not installed.'
  const user = owner === null ? [] : ['--user=/proc/self/fd/4', '--preserve-credentials']
  try {
    const child = Bun.spawn([nsenter, ...user, '--net=/proc/self/fd/3', nft, '-f', '-'], {
      stdio: [
        new Blob([RULES, projects === null ? '' : projectRules(projects)]),
        ...(['ignore', 'pipe'] as const),
        ...[network, owner ?? ('ignore' as const)],
      ],
      env: { PATH: path },
      signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]),
      killSignal: 'SIGKILL',
    })
    const [code, said] = await Promise.all([child.exited, new Response(child.stderr).text()])
    return code === 0 ? null : `nft failed: ${said.trim().split('\n')[0] || `status ${code}`}.`
  } catch (error) {
    return `nsenter failed: ${messageOf(error)}`
  }
}
