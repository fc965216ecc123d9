import { dirname } from 'node:path'
import type { OutboundSettings } from '../sandbox.ts'

/** What a sandbox may do. Paths are absolute and without links: Seatbelt compares them as the kernel resolves them. */
export interface ProfileSpec {
  /** Files and directories that may be read, with all below. */
  readonly read: readonly string[]
  /** Directories of which the names may be listed. */
  readonly list: readonly string[]
  /** Files and directories that may be written too. */
  readonly write: readonly string[]
  /** What servers reach. */
  readonly outbound: OutboundSettings
}

/** The system's own directories; those of its packages and of Homebrew, without configuration and data. */
const SYSTEM = [
  ...['/bin', '/sbin', '/usr', '/System', '/private/var/select', '/private/var/db/timezone'],
  ...['/private/var/db/dyld', '/Library/Apple', '/Library/Frameworks', '/Library/Java'],
  '/Library/Developer/CommandLineTools',
  ...['bin', 'sbin', 'Caskroom', 'Cellar', 'Frameworks', 'include', 'lib', 'libexec', 'opt', 'share'].map(
    (name) => `/opt/homebrew/${name}`,
  ),
]

/** Devices that programs count on; not those of other terminals. */
const DEVICES = ['null', 'zero', 'random', 'urandom', 'tty', 'dtracehelper'].map((name) => `/dev/${name}`)

/** Services of the system: names of users and groups, temporary directories, certificates, names of hosts, power. */
const SERVICES = [
  'com.apple.bsd.dirhelper',
  'com.apple.system.opendirectoryd.libinfo',
  'com.apple.system.opendirectoryd.membership',
  'com.apple.system.notification_center',
  'com.apple.SystemConfiguration.configd',
  'com.apple.trustd',
  'com.apple.trustd.agent',
  'com.apple.PowerManagement.control',
]

/** What programs ask of the machine and of their own processes: see sysctl(8). */
const SYSCTLS = [
  ...['hw.', 'machdep.', 'net.', 'security.mac.lockdown_mode_state', 'sysctl.', 'user.', 'vm.'],
  ...['arg', 'boot', 'hostname', 'hv', 'iossupport', 'max', 'ngroups', 'os', 'proc.pid.', 'proc.pgrp.'].map(
    (name) => `kern.${name}`,
  ),
  ...['secure_kernel', 'tcsm', 'usrstack', 'version'].map((name) => `kern.${name}`),
]

/** The socket of the process that resolves names of hosts. */
const RESOLVER = '/private/var/run/mDNSResponder'

/**
 * Returns a profile of Seatbelt (sandbox-exec(1)): what is not allowed is denied. Of what reaches the network it knows
 * loopback and ports, but no other address, so `public` is the same as `open`, and of a host in a list only its port counts.
 */
export function seatbeltProfile({ read, list, write, outbound }: ProfileSpec): string {
  const readable = [...SYSTEM, ...DEVICES, ...read, ...write]
  const above = new Set([...readable, ...list, RESOLVER].flatMap(ancestorsOf))
  return [
    '(version 1)',
    '(deny default)',
    '(allow process-exec)',
    '(allow process-fork)',
    '(allow signal (target same-sandbox))',
    '(allow process-info* (target same-sandbox))',
    '(allow process-info-listpids)',
    // Not kern.procargs2, which would show the variables of the user's other programs.
    rule('sysctl-read', 'sysctl-name-prefix', SYSCTLS),
    rule('mach-lookup', 'global-name', SERVICES),
    '(allow ipc-posix-sem)',
    // A terminal that is opened inside carries the extension; those of the user do not.
    '(allow pseudo-tty)',
    '(allow file-read* file-write* file-ioctl (literal "/dev/ptmx"))',
    '(allow file-read* file-write* file-ioctl (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))',
    '(allow file-map-executable)',
    rule('file-read-metadata', 'literal', [...above, ...list]),
    rule('file-read*', 'subpath', readable),
    rule('file-read-data', 'literal', ['/', ...list]),
    rule('file-write*', 'subpath', write),
    rule('file-write-data file-ioctl', 'literal', DEVICES),
    '(allow system-socket)',
    // Sockets with a path, of the server's own files alone.
    ...write.flatMap((path) => [
      `(allow network-bind (local unix-socket (subpath ${quoted(path)})))`,
      `(allow network-outbound (remote unix-socket (subpath ${quoted(path)})))`,
    ]),
    '(allow network-bind network-inbound (local ip "*:*"))',
    '(allow network-outbound (remote ip "localhost:*"))',
    ...outboundRules(outbound),
    '',
  ].join('\n')
}

function outboundRules({ mode, hosts }: OutboundSettings): string[] {
  if (mode === 'none') return []
  const resolver = `(allow network-outbound (literal ${quoted(RESOLVER)}))`
  if (mode !== 'list') return [resolver, '(allow network-outbound (remote ip "*:*"))']
  const ports = new Set(hosts.map((host) => /:(\d+)$/.exec(host)?.[1] ?? '*'))
  return [resolver, ...[...ports].map((port) => `(allow network-outbound (remote ip "*:${port}"))`)]
}

const rule = (operations: string, filter: string, values: readonly string[]): string =>
  values.length === 0
    ? ''
    : `(allow ${operations}\n${values.map((value) => `  (${filter} ${quoted(value)})`).join('\n')})`

/** Returns a path as a string of a profile. */
const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`

/** Returns the directories above a path, which programs look at on their way to it. */
function ancestorsOf(path: string): string[] {
  const above = dirname(path)
  return above === path ? [] : [above, ...ancestorsOf(above)]
}
