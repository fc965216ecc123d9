import { afterAll, describe, expect, test } from 'bun:test'
import { createChat } from '../src/chat.ts'
import { parse, type ToPage } from '../src/protocol.ts'

const chat = createChat({ hostname: '127.0.0.1', port: 0, history: 3 })
afterAll(() => chat.stop())

/** A page: it sends, and waits for what it is sent. */
async function connect() {
  const socket = new WebSocket(new URL('/ws', chat.url.href.replace('http', 'ws')))
  const received: ToPage[] = []
  let wake = () => {}
  socket.onmessage = ({ data }) => {
    received.push(JSON.parse(data))
    wake()
  }
  await new Promise((resolve) => {
    socket.onopen = resolve
  })
  return {
    socket,
    send: (message: unknown) => socket.send(JSON.stringify(message)),
    /** The next message of this type. */
    async next<Type extends ToPage['type']>(type: Type): Promise<ToPage & { type: Type }> {
      for (;;) {
        const message = received.shift()
        if (message?.type === type) return message as ToPage & { type: Type }
        if (!message) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      }
    },
    [Symbol.dispose]: () => socket.close(),
  }
}

const names = (message: { people: { name: string }[] }) => message.people.map(({ name }) => name)

describe('a room', () => {
  test('shows who comes and goes, and what they say, to those in it alone', async () => {
    using ada = await connect()
    ada.send({ type: 'join', room: 'one', name: 'Ada' })
    expect(names(await ada.next('welcome'))).toEqual(['Ada'])
    const bob = await connect()
    bob.send({ type: 'join', room: 'One', name: ' Bob ' })
    expect(names(await bob.next('welcome'))).toEqual(['Ada', 'Bob'])
    expect(names(await ada.next('people'))).toEqual(['Ada', 'Bob'])
    using eve = await connect()
    eve.send({ type: 'join', room: 'two', name: 'Eve' })
    await eve.next('welcome')

    bob.send({ type: 'say', text: '<b>hi</b>' })
    expect((await ada.next('message')).message).toMatchObject({ text: '<b>hi</b>', from: { name: 'Bob' } })
    expect((await bob.next('message')).message.text).toBe('<b>hi</b>')
    bob.socket.close()
    expect(names(await ada.next('people'))).toEqual(['Ada'])
    // Had anything of the other room reached this one, it would come first.
    eve.send({ type: 'nothing' })
    expect(await eve.next('refused')).toEqual({ type: 'refused', reason: '"type" is "join" or "say".' })
  })

  test('shows the last messages to those who come later', async () => {
    using ada = await connect()
    ada.send({ type: 'join', room: 'history', name: 'Ada' })
    for (const text of ['1', '2', '3', '4']) ada.send({ type: 'say', text })
    for (let n = 0; n < 4; n++) await ada.next('message')
    using bob = await connect()
    bob.send({ type: 'join', room: 'history', name: 'Bob' })
    expect((await bob.next('welcome')).history.map(({ text }) => text)).toEqual(['2', '3', '4'])
  })

  test('slows down those who send too much', async () => {
    using ada = await connect()
    ada.send({ type: 'join', room: 'fast', name: 'Ada' })
    for (let n = 0; n < 10; n++) ada.send({ type: 'say', text: 'x' })
    expect((await ada.next('refused')).reason).toContain('Not so fast')
  })
})

test('a message before the first join is refused; one far too long ends the connection', async () => {
  using ada = await connect()
  ada.send({ type: 'say', text: 'x' })
  expect((await ada.next('refused')).reason).toBe('Join a room first.')
  const closed = new Promise((resolve) => {
    ada.socket.onclose = resolve
  })
  ada.send({ type: 'say', text: 'x'.repeat(10_000) })
  await closed
})

test.each([
  ['no JSON', '{'],
  ['null', 'null'],
  ['an empty name', '{"type":"join","room":"a","name":" "}'],
  ['a long name', `{"type":"join","room":"a","name":"${'x'.repeat(25)}"}`],
  ['a room with a slash', '{"type":"join","room":"a/b","name":"x"}'],
  ['an empty message', '{"type":"say","text":"\\n"}'],
  ['a long message', `{"type":"say","text":"${'x'.repeat(501)}"}`],
])('%s is refused', (_name, data) => {
  expect(parse(data).type).toBe('refused')
})

test('control characters and turned text are taken out', () => {
  expect(parse('{"type":"say","text":" a\\u0000b\\n\\u202ec "}')).toEqual({ type: 'say', text: 'ab\nc' })
})

test('the page comes with a policy; other paths are 404, /ws wants a WebSocket', async () => {
  const page = await fetch(chat.url)
  expect(page.headers.get('content-security-policy')).toContain("default-src 'self'")
  expect((await fetch(new URL('/nothing', chat.url))).status).toBe(404)
  expect((await fetch(new URL('/ws', chat.url))).status).toBe(426)
})
