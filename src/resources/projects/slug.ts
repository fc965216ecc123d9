import { OWN_LABELS } from '../../http/host.ts'
import type { Random } from '../../runtime/random.ts'

/**
 * Most characters of a slug. A label of a host name has at most 63 (RFC 1035, 2.3.4); this leaves room for a suffix.
 * @bound system
 */
const MAX_LENGTH = 50

const ADJECTIVES = [
  ...['amber', 'brisk', 'calm', 'clear', 'coral', 'crisp', 'dawn', 'deep', 'early', 'fair', 'fleet', 'fresh'],
  ...['gentle', 'golden', 'green', 'keen', 'light', 'lively', 'lucky', 'mellow', 'misty', 'noble', 'north'],
  ...['open', 'pale', 'quick', 'quiet', 'rapid', 'silver', 'smooth', 'south', 'steady', 'still', 'swift'],
  ...['tidal', 'warm', 'west', 'white', 'wide', 'windy'],
]

const NOUNS = [
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

/** Returns a name of two words, for a project created without a name. */
export const randomName = (random: Random): string => {
  const [one = 0, two = 0] = random.bytes(2)
  return `${ADJECTIVES[one % ADJECTIVES.length]} ${NOUNS[two % NOUNS.length]}`
}

/**
 * Converts a project's name to a label of a host name: lower-case letters, digits and hyphens (RFC 1123, 2.1). Appends
 * a number if the label is taken.
 */
export function slugFor(name: string, isTaken: (slug: string) => boolean): string {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_LENGTH)
    .replace(/^-+|-+$/g, '')
  const base = plain === '' ? 'project' : plain
  for (let number = 1; ; number += 1) {
    const slug = number === 1 ? base : `${base}-${number}`
    if (!OWN_LABELS.has(slug) && !isTaken(slug)) return slug
  }
}
