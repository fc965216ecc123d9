/** Matches the names and addresses of loopback. A start loads no library for that. */
const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[?::1\]?)$/

/** Returns what it means for a person that a model is asked at an address; null at one of this machine. */
const modelAt = (url: unknown): string | null =>
  LOOPBACK.test(new URL(String(url)).hostname) ? null : 'has tasks, and your key for the model, sent there'

/** What settings let others do, by option; null for those of an option that let nobody do anything. */
const MEANINGS: Readonly<Record<string, (setting: unknown) => string | null>> = {
  isolation: (name) => (name === 'none' ? 'lets servers do on this machine what you may' : null),
  'allow-unix-sockets': (isOn) =>
    isOn ? 'lets servers reach programs of this machine, such as Docker and an SSH agent' : null,
  host: (host) => (LOOPBACK.test(String(host)) ? null : 'lets other machines reach berth'),
  'openai-base-url': modelAt,
  'anthropic-base-url': modelAt,
}

/**
 * Returns a sentence about a setting of a config file that nobody has named, if it lets others do what the person who starts
 * berth may not expect; null otherwise. Such a file may have come with somebody's code, or with a copy from a server.
 *
 * @param path the file
 * @param key the option as the file spells it
 */
export function noteOnFound(path: string, option: string, key: string, setting: unknown): string | null {
  const meaning = MEANINGS[option]?.(setting) ?? null
  if (meaning === null) return null
  return `${path} was found here and sets "${key}" to ${JSON.stringify(setting)}, which ${meaning}. Remove that unless you trust who wrote it. If you name the file with --config, nothing is said.`
}
