import { createChat } from './chat.ts'

const { HOST = '127.0.0.1', PORT = '3000', HISTORY = '50' } = process.env

const chat = createChat({ hostname: HOST, port: Number(PORT), history: Number(HISTORY) })
console.log(`Listening on ${chat.url}`)

async function stop(): Promise<void> {
  await chat.stop()
  process.exit(0)
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
