/** Who is in a room. The id is of the connection: two people may share a name, and one may come twice. */
export interface Person {
  id: string
  name: string
}

export interface Message {
  id: string
  from: Person
  text: string
  /** Milliseconds since 1970. */
  at: number
}

/** What a page sends. The first of a connection is `join`; a further one changes the room or the name. */
export type FromPage = { type: 'join'; room: string; name: string } | { type: 'say'; text: string }

/** What a page is sent. */
export type ToPage =
  | { type: 'welcome'; room: string; you: Person; people: Person[]; history: Message[] }
  | { type: 'people'; people: Person[] }
  | { type: 'message'; message: Message }
  | { type: 'refused'; reason: string }

export const MAX_NAME = 24
export const MAX_TEXT = 500

/** What a page sent, checked, or the reason why it is refused. */
export function parse(data: string): FromPage | { type: 'refused'; reason: string } {
  let value: Record<string, unknown> | null
  try {
    value = JSON.parse(data)
  } catch {
    return refused('That is not JSON.')
  }
  switch (value?.type) {
    case 'join': {
      const name = typeof value.name === 'string' ? tidy(value.name).replaceAll(/\s+/g, ' ') : ''
      if (name === '' || name.length > MAX_NAME) return refused(`A name has 1 to ${MAX_NAME} characters.`)
      const room = typeof value.room === 'string' ? value.room.toLowerCase() : ''
      if (!/^[a-z0-9-]{1,32}$/.test(room)) {
        return refused('The name of a room has 1 to 32 letters, digits and dashes.')
      }
      return { type: 'join', room, name }
    }
    case 'say': {
      const text = typeof value.text === 'string' ? tidy(value.text) : ''
      if (text === '' || text.length > MAX_TEXT) return refused(`A message has 1 to ${MAX_TEXT} characters.`)
      return { type: 'say', text }
    }
    default:
      return refused('"type" is "join" or "say".')
  }
}

const refused = (reason: string) => ({ type: 'refused', reason }) as const

/** Without control characters other than line breaks, and without marks that turn the direction of text around. */
const tidy = (text: string): string =>
  text.replaceAll(/(?!\n)\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu, '').trim()
