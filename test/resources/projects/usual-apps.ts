import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { logged, ready } from '../../support/projects.ts'

const FIXTURES = join(import.meta.dir, '../../../fixtures/projects')

/** How long the installation and the build of a large framework may take on a busy machine. */
const PATIENCE_MS = 240_000

/** The registry that packages come from, as npm is set up here. */
const REGISTRY = Bun.spawnSync(['npm', 'config', 'get', 'registry']).stdout.toString().trim()

/** An app in its usual layout, which does not know berth: what to ask for, and what the answer holds. */
export interface UsualApp {
  asks: Record<string, string | RegExp>
  /** A program that it needs beside berth. */
  needs?: string
  /** It comes as a repository; an archive by default. */
  by?: 'git'
}

const reachable = await fetch(`${REGISTRY.replace(/\/$/, '')}/is-number`, {
  signal: AbortSignal.timeout(10_000),
}).then(
  (response) => response.ok,
  () => false,
)
if (!reachable)
  console.error(`SKIP: apps with packages, since the registry of npm (${REGISTRY}) does not answer`)

/** A fixture as an archive, as `tar` makes it of a folder. */
function archive(name: string): object {
  const tar = Bun.spawnSync(['tar', '-cz', '-C', FIXTURES, name])
  return { type: 'archive', data: tar.stdout.toString('base64') }
}

/** A fixture as a repository with one commit. */
function repository(repositories: string, name: string): object {
  const folder = join(repositories, name)
  cpSync(join(FIXTURES, name), folder, { recursive: true })
  const git = (...args: string[]) => {
    const identity = [
      '-c',
      'user.name=berth',
      '-c',
      'user.email=berth@localhost',
      '-c',
      'init.defaultBranch=main',
    ]
    const { exitCode, stderr } = Bun.spawnSync(['git', '-C', folder, ...identity, ...args])
    if (exitCode !== 0) throw new Error(stderr.toString())
  }
  git('init', '-q')
  git('add', '-A')
  git('commit', '-qm', 'first')
  return { type: 'git', url: folder }
}

/**
 * Tests that each app comes up on a server of one berth.
 *
 * @param apps by their names in fixtures/projects
 */
export function usualAppsComeUp(apps: Record<string, UsualApp>): void {
  describe('an app in its usual layout, without a word for berth', () => {
    let berth: TestBerth
    let repositories: string
    beforeAll(async () => {
      repositories = mkdtempSync(join(tmpdir(), 'berth-repositories-'))
      berth = await testBerth({
        flags: {
          'source-folders': repositories,
          plan: { projects: { large: 50 }, storage_gb: { large: 50 } },
        },
      })
    })
    afterAll(async () => {
      await berth[Symbol.asyncDispose]()
      rmSync(repositories, { recursive: true, force: true })
    })

    for (const [name, { asks, needs, by }] of Object.entries(apps)) {
      const missing = needs !== undefined && Bun.which(needs) === null
      if (missing) console.error(`SKIP: ${name}, since ${needs} is not installed`)
      const skip = missing || (!reachable && needs === undefined)
      test.skipIf(skip)(
        `${name} comes up`,
        async () => {
          const server = await berth.server({ tier: 'large' })
          const source = by === 'git' ? repository(repositories, name) : archive(name)
          const project = await ready(berth, server, { name, visibility: 'public', source }, PATIENCE_MS)
          for (const [path, expected] of Object.entries(asks)) {
            const response = await fetch(new URL(path, project.url ?? ''), {
              headers: { accept: 'text/html' },
            })
            const text = await response.text()
            if (typeof expected === 'string') expect(text).toContain(expected)
            else expect(text).toMatch(expected)
            expect(response.status).toBe(200)
          }
          // What package managers download while they install is no file of the server's.
          expect((await berth.exec(server, 'ls -A')).stdout).not.toMatch(/^\.(?:cache|npm)$/m)
          if (process.env.BERTH_TEST_VERBOSE) console.error(await logged(berth, project.id))
          await berth.call('DELETE', `/servers/${server}`)
        },
        2 * PATIENCE_MS,
      )
    }
  })
}
