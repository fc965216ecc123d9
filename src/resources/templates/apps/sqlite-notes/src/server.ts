import { createApp } from './app.ts'
import { openDatabase } from './database.ts'
import { Notes } from './notes.ts'

const { HOST = '127.0.0.1', PORT = '3000', DATABASE = 'data/notes.sqlite' } = process.env

const database = openDatabase(DATABASE)
const server = createApp({ hostname: HOST, port: Number(PORT), notes: new Notes(database) })
console.log(`Listening on ${server.url}, notes in ${DATABASE}`)

/** Takes no new connection, lets requests under way end for up to 5 seconds, closes the database, exits. */
async function stop(): Promise<void> {
  setTimeout(() => server.stop(true), 5_000).unref()
  await server.stop()
  database.close()
  process.exit(0)
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
