import type { Message, Person } from './protocol.ts'

const MAX_ROOMS = 200
const MAX_PEOPLE = 100

interface Room {
  readonly people: Map<string, Person>
  /** Oldest first. */
  readonly history: Message[]
}

/** Who is in which room, and what was said there last. All of it in memory. */
export class Rooms {
  readonly #rooms = new Map<string, Room>()
  readonly #historyLength: number

  constructor(historyLength: number) {
    this.#historyLength = historyLength
  }

  /** Lets a person in, or tells why not. */
  enter(name: string, person: Person): string | null {
    const room = this.#rooms.get(name) ?? this.#open(name)
    if (!room) return 'There are too many rooms. Join one that there is.'
    if (room.people.size >= MAX_PEOPLE) return 'This room is full.'
    room.people.set(person.id, person)
    return null
  }

  leave(name: string, person: Person): void {
    this.#rooms.get(name)?.people.delete(person.id)
  }

  /** Keeps what a person says in a room. */
  say(name: string, from: Person, text: string): Message {
    const message = { id: crypto.randomUUID(), from, text, at: Date.now() }
    const history = this.#rooms.get(name)?.history
    history?.push(message)
    if (history && history.length > this.#historyLength) history.shift()
    return message
  }

  people(name: string): Person[] {
    return [...(this.#rooms.get(name)?.people.values() ?? [])]
  }

  history(name: string): Message[] {
    return [...(this.#rooms.get(name)?.history ?? [])]
  }

  /** A new room. Where there are too many, it takes the place of the oldest that nobody is in. */
  #open(name: string): Room | null {
    if (this.#rooms.size >= MAX_ROOMS) {
      const empty = [...this.#rooms].find(([, { people }]) => people.size === 0)
      if (!empty) return null
      this.#rooms.delete(empty[0])
    }
    const room: Room = { people: new Map(), history: [] }
    this.#rooms.set(name, room)
    return room
  }
}
