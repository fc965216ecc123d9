import { expect, test } from 'bun:test'
import { bypassesOf } from '../../../src/hosting/registries/bypass.ts'

const of = (command: string, files: Record<string, string>) => {
  const read = async (path: string): Promise<Uint8Array> => {
    const text = files[path]
    if (text === undefined) throw new Error('missing')
    return new TextEncoder().encode(text)
  }
  return bypassesOf(command, { read }, 'app', async () => command.startsWith('own'))
}

const LOCK = { 'app/package-lock.json': '"resolved": "https://registry.npmjs.org/ms/-/ms-2.1.3.tgz"' }
const PAST = "past berth's relay of registries."

test.each([
  ['npm ci', LOCK, []],
  [
    'npm ci',
    { 'app/package-lock.json': '"resolved": "https://npm.example/ms.tgz"' },
    [`npm asks npm.example itself, as package-lock.json says, ${PAST}`],
  ],
  ['bun install', LOCK, [`Bun asks registry.npmjs.org itself, as package-lock.json says, ${PAST}`]],
  ['bun install', { ...LOCK, 'app/bun.lock': '{}' }, []],
  [
    'yarn install --frozen-lockfile',
    { 'app/yarn.lock': 'ms@2:\n  resolved "https://registry.yarnpkg.com/ms.tgz#1"\n' },
    [`Yarn 1 asks registry.yarnpkg.com itself, as yarn.lock says, ${PAST}`],
  ],
  ['own yarn', { 'app/yarn.lock': 'ms@2:\n  resolved "https://registry.yarnpkg.com/ms.tgz#1"\n' }, []],
  [
    'yarn install',
    { 'app/yarn.lock': '__metadata:\n  version: 8\n"ms@npm:2":\n  resolution: "ms@npm:2.1.3"\n' },
    [],
  ],
  [
    'pnpm i',
    { 'app/pnpm-lock.yaml': 'resolution: {tarball: https://codeload.example/a}' },
    [`pnpm asks codeload.example itself, as pnpm-lock.yaml says, ${PAST}`],
  ],
  [
    'uv sync --frozen',
    { 'app/uv.lock': 'sdist = { url = "https://files.example/a.tar.gz" }' },
    [`uv asks files.example itself, as uv.lock says, ${PAST}`],
  ],
  ['pip install -r requirements.txt', LOCK, []],
] as [string, Record<string, string>, string[]][])(
  '%s: what goes past the relay is named',
  async (command, files, expected) => {
    expect(await of(command, files)).toEqual(expected)
  },
)
