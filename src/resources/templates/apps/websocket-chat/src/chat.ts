import { join } from 'node:path'
import { Allowance } from './allowance.ts'
import { type FromPage, type Person, parse, type ToPage } from './protocol.ts'
import { Rooms } from './rooms.ts'

const pages = join(import.meta.dir, '../public')

/** The page may load what is its own and talk to its own app, and nothing else. */
const POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"

/** What is known of a connection. */
interface Connection {
  id: string
  allowance: Allowance
  /** Null before the first `join`. */
  place: { room: string; person: Person } | null
}
type Socket = Bun.ServerWebSocket<Connection>

interface ChatOptions {
  hostname: string
  /** 0 takes any port that is free. */
  port: number
  /** How many messages a room remembers. */
  history: number
}

/** Starts the chat: the page and, at `/ws`, its WebSockets. */
export function createChat({ hostname, port, history }: ChatOptions) {
  const rooms = new Rooms(history)
  const sockets = new Set<Socket>()
  let whenEmpty = () => {}
  const topic = (room: string) => `room:${room}`
  const send = (socket: Socket, message: ToPage) => socket.send(JSON.stringify(message))
  const tell = (room: string, message: ToPage) => server.publish(topic(room), JSON.stringify(message))

  function leave(socket: Socket): void {
    const { place } = socket.data
    if (!place) return
    socket.data.place = null
    socket.unsubscribe(topic(place.room))
    rooms.leave(place.room, place.person)
    tell(place.room, { type: 'people', people: rooms.people(place.room) })
  }

  function enter(socket: Socket, { room, name }: FromPage & { type: 'join' }): void {
    leave(socket)
    const person = { id: socket.data.id, name }
    const reason = rooms.enter(room, person)
    if (reason) return void send(socket, { type: 'refused', reason })
    socket.data.place = { room, person }
    const people = rooms.people(room)
    tell(room, { type: 'people', people })
    socket.subscribe(topic(room))
    send(socket, { type: 'welcome', room, you: person, people, history: rooms.history(room) })
  }

  function receive(socket: Socket, data: string): void {
    const message = socket.data.allowance.take()
      ? parse(data)
      : ({ type: 'refused', reason: 'Not so fast. Wait a moment.' } as const)
    if (message.type === 'refused') return void send(socket, message)
    if (message.type === 'join') return void enter(socket, message)
    const { place } = socket.data
    if (!place) return void send(socket, { type: 'refused', reason: 'Join a room first.' })
    const { room, person } = place
    tell(room, { type: 'message', message: rooms.say(room, person, message.text) })
  }

  const server = Bun.serve<Connection>({
    hostname,
    port,
    routes: {
      '/': page('index.html'),
      '/app.js': page('app.js'),
      '/connection.js': page('connection.js'),
      '/style.css': page('style.css'),
      '/icon.svg': page('icon.svg'),
      '/health': Response.json({ status: 'ok' }),
    },
    fetch(request, server) {
      if (new URL(request.url).pathname !== '/ws') {
        return Response.json({ error: 'There is nothing here.' }, { status: 404 })
      }
      const data = { id: crypto.randomUUID(), allowance: new Allowance(8, 1_000), place: null }
      if (server.upgrade(request, { data })) return
      return Response.json(
        { error: 'Connect with a WebSocket.' },
        { status: 426, headers: { upgrade: 'websocket' } },
      )
    },
    websocket: {
      // A connection that sends more at once, or whose other end answers no ping for so many seconds, is closed.
      maxPayloadLength: 8 * 1024,
      idleTimeout: 60,
      open: (socket) => void sockets.add(socket),
      message(socket, data) {
        if (typeof data === 'string') receive(socket, data)
        else socket.close(1003, 'Send text.')
      },
      close(socket) {
        sockets.delete(socket)
        leave(socket)
        if (sockets.size === 0) whenEmpty()
      },
    },
  })

  return {
    url: server.url,
    /** Tells every page that the app goes, so that it looks for the next one, and stops listening. */
    async stop(): Promise<void> {
      const left = new Promise<void>((resolve) => {
        whenEmpty = resolve
      })
      for (const socket of sockets) socket.close(1001, 'The app stops.')
      if (sockets.size > 0) await Promise.race([left, Bun.sleep(1_000)])
      await server.stop(true)
    },
  }
}

/** A file of public/, read anew for each request. */
function page(name: string) {
  return () =>
    new Response(Bun.file(join(pages, name)), {
      headers: {
        'cache-control': 'no-cache',
        'content-security-policy': POLICY,
        'x-content-type-options': 'nosniff',
      },
    })
}
