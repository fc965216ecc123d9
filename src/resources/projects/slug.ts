import type { Random } from '../../runtime/random.ts'

/** A label of a host name is no longer (RFC 1035, 2.3.4); room is left for a suffix. */
const LONGEST = 50

/** Names that mean something else under `.localhost`. */
const RESERVED = new Set(['api', 'www', 'mcp', 'berth', 'localhost', 'dashboard'])

const FIRST = [
  ...['amber', 'brisk', 'calm', 'clear', 'coral', 'crisp', 'dawn', 'deep', 'early', 'fair', 'fleet', 'fresh'],
  ...['gentle', 'golden', 'green', 'keen', 'light', 'lively', 'lucky', 'mellow', 'misty', 'noble', 'north'],
  ...['open', 'pale', 'quick', 'quiet', 'rapid', 'silver', 'smooth', 'south', 'steady', 'still', 'swift'],
  ...['tidal', 'warm', 'west', 'white', 'wide', 'windy'],
]

const SECOND = [
  ...[
    'anchor',
    'bay',
    'beacon',
    'bow',
    'breeze',
    'bridge',
    'buoy',
    'canal',
    'cape',
    'cargo',
    'coast',
    'compass',
  ],
  ...[
    'cove',
    'current',
    'deck',
    'delta',
    'dock',
    'ferry',
    'fjord',
    'harbor',
    'haven',
    'helm',
    'hull',
    'island',
  ],
  ...[
    'jetty',
    'keel',
    'lagoon',
    'lantern',
    'mast',
    'pier',
    'port',
    'quay',
    'reef',
    'rudder',
    'sail',
    'shore',
  ],
  ...['sound', 'strait', 'tide', 'wharf'],
]

/** Two words, for a project that was given no name. */
export const twoWords = (random: Random): string => {
  const [one = 0, two = 0] = random.bytes(2)
  return `${FIRST[one % FIRST.length]} ${SECOND[two % SECOND.length]}`
}

/**
 * The label of a host name that a project's name makes: lower-case letters, digits and hyphens (RFC 1123, 2.1),
 * with a number behind it where it is taken.
 */
export function slugFor(name: string, isTaken: (slug: string) => boolean): string {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, LONGEST)
    .replace(/^-+|-+$/g, '')
  const base = plain === '' ? 'project' : plain
  for (let number = 1; ; number += 1) {
    const slug = number === 1 ? base : `${base}-${number}`
    if (!RESERVED.has(slug) && !isTaken(slug)) return slug
  }
}
