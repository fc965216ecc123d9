/** Parses a Procfile into commands by process type. Skips invalid lines. */
export function parseProcfile(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const [, name, command] = /^\s*([A-Za-z0-9_-]+)\s*:\s*(\S.*?)\s*$/.exec(line) ?? []
    if (name !== undefined && command !== undefined && !found.has(name)) found.set(name, command)
  }
  return found
}
