import { type OwnFlag, parseFlags } from './serve-flags.ts'

/** Flags of `run` in addition to the options of `serve`. */
export const RUN_FLAGS: readonly OwnFlag[] = [
  { name: 'keep', description: "keep the instance's data directory, with its log, and say where it is" },
  {
    name: 'coverage',
    value: 'FILE',
    description: 'write which operations and statuses of the API were reached, as JSON',
  },
]

/** Descriptions, by name, of options of `serve` with another meaning for `run`. Only flags set them. */
export const RUN_DESCRIPTIONS: Readonly<Record<string, string>> = {
  host: 'address to listen on (default 127.0.0.1)',
  port: 'port to listen on (default: any free one)',
  data: 'run on this directory, and keep it (default: a temporary one)',
  ephemeral: 'a temporary directory, which is removed: so it is without --data',
  json: 'print one JSON line on stderr when ready, before CMD starts',
  'project-ports': 'ports of projects and deployments (default: a free block)',
}

/** A parsed `run` command line. */
export interface RunRequest {
  /** Options of `serve` and of RUN_FLAGS, by name. */
  flags: Record<string, unknown>
  /** The command and its arguments. */
  command: readonly [string, ...string[]]
}

/**
 * Parses `run [options] -- CMD ARG…` without loading the large command-line library. Returns null for any other
 * command line and for wrong or unusual flags, which that library handles.
 */
export function parseRun(args: readonly string[]): RunRequest | null {
  const at = args.indexOf('--')
  const [name, ...rest] = at === -1 ? [] : args.slice(at + 1)
  if (args[0] !== 'run' || name === undefined) return null
  const flags = parseFlags(args.slice(1, at), RUN_FLAGS)
  return flags && { flags, command: [name, ...rest] }
}
