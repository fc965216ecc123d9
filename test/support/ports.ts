import { isBlockedByBrowsers } from '../../src/http/host.ts'

/*
 * Ports from FIRST to END - 1 are handed out in blocks of SIZE, the lowest first. They lie below those that the kernel hands
 * to who asks for any, so that nothing that starts meanwhile gets one by chance.
 */
const FIRST = 10_000
const END = 32_000
const SIZE = 500

/** How many ports at the end of a block are for projects. */
const PROJECTS = 200

let block: number | null = null
let used = 0

/**
 * Returns the first port of a block that no other process of the tests has. A listener on that port holds the block until
 * this process ends.
 */
function ownBlock(): number {
  if (block !== null) return block
  for (let first = FIRST; first < END; first += SIZE) {
    try {
      Bun.listen({ hostname: '127.0.0.1', port: first, exclusive: true, socket: { data() {} } }).unref()
      block = first
      return first
    } catch {
      // Another process has it.
    }
  }
  throw new Error(`Other processes listen on every ${SIZE}th port from ${FIRST} to ${END - 1}.`)
}

/** A port of 127.0.0.1 on which nobody listens, which browsers open, and which was not given for long. */
export function freePort(): number {
  const first = ownBlock() + 1
  const count = SIZE - PROJECTS - 1
  for (let tried = 0; tried < count; tried += 1) {
    const port = first + (used++ % count)
    if (isBlockedByBrowsers(port)) continue
    try {
      Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
      return port
    } catch {
      // Something listens there still.
    }
  }
  throw new Error(`All ports from ${first} to ${first + count - 1} are taken.`)
}

/**
 * Returns the ports for the projects of all berths that this process starts, as `--project-ports` takes them. Files that
 * run beside each other run in processes of their own.
 */
export function projectPorts(): string {
  const [first, last] = projectRange()
  return `${first}-${last}`
}

/** Reports whether a URL is that of a site on one of `projectPorts`. */
export function isProjectUrl(url: string): boolean {
  const [first, last] = projectRange()
  const port = Number(/^http:\/\/127\.0\.0\.1:(\d+)\/$/.exec(url)?.[1])
  return first <= port && port <= last
}

function projectRange(): [first: number, last: number] {
  const end = ownBlock() + SIZE
  return [end - PROJECTS, end - 1]
}
