import { describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import { type Detection, detectApp } from '../../../src/hosting/detection/detect.ts'
import type { Machine } from '../../../src/hosting/detection/machine.ts'

const BARE: Machine = {
  has: async () => false,
  toolchains: async () => [],
  check: async () => ({ works: false, error: 'not found' }),
  memoryBytes: null,
}

/** Detects an app of these files. */
async function detect(files: Record<string, string>): Promise<Detection> {
  const path = mkdtempSync(join(tmpdir(), 'berth-foreign-'))
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(path, name)), { recursive: true })
      writeFileSync(join(path, name), text)
    }
    return await detectApp({ workspace: new LocalWorkspace(path), directory: '', machine: BARE })
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
}

/** Files, the sentence, the proposed berth.json, the lines of evidence. */
type Row = [
  files: Record<string, string>,
  says: string,
  berthJson: Record<string, unknown> | null,
  lines: (number | null)[],
]

const ROWS: Record<string, Row> = {
  'the last stage of a Dockerfile': [
    {
      Dockerfile:
        'FROM a AS build\nCMD ["no"]\nFROM b\nEXPOSE 8080/tcp\nENTRYPOINT ["./serve", "--at"]\nCMD ["8080"]\n',
    },
    'There is Dockerfile, but berth runs no containers; its command is `./serve --at 8080`, its port is 8080.',
    { start: './serve --at 8080', port: 8080 },
    [2, 4],
  ],
  'a command of a Dockerfile that reads PORT': [
    { Dockerfile: 'FROM a\nEXPOSE 8080\nCMD ./serve \\\n  --port $PORT' },
    'its command is `./serve    --port $PORT`, its port is 8080.',
    { start: './serve    --port $PORT' },
    [3, 2],
  ],
  'a Dockerfile without a command': [
    { Dockerfile: 'FROM nginx\n' },
    'There is Dockerfile, but berth runs no containers.',
    null,
    [null],
  ],
  'services of a compose file': [
    { 'compose.yaml': 'services:\n  web:\n    build: ./web\n  db:\n    image: postgres:16\n' },
    'it has web (./web): bring up one by --directory.',
    null,
    [1],
  ],
  'a target of a Makefile': [
    { Makefile: 'VERSION := 1\nbuild:\n\ttrue\nrun: build\n\t./serve\n' },
    'There is Makefile, whose targets berth does not run by itself; its command is `make run`.',
    { start: 'make run' },
    [4],
  ],
  'a recipe of a justfile': [
    { justfile: 'serve port="1":\n  ./serve\n' },
    'its command is `just serve`',
    { start: 'just serve' },
    [1],
  ],
  'a flake': [{ 'flake.nix': '{ }' }, 'There is flake.nix, but berth does not use Nix.', null, [null]],
  'a service of render.yaml': [
    { 'render.yaml': 'services:\n  - type: web\n    buildCommand: make\n    startCommand: ./serve\n' },
    'its build is `make`, its command is `./serve`.',
    { build: 'make', start: './serve' },
    [3, 4],
  ],
  'railpack.json': [
    {
      'railpack.json':
        '{"steps": {"build": {"commands": ["make"]}},\n "deploy": {"startCommand": "./serve"}}',
    },
    'its build is `make`, its command is `./serve`.',
    { build: 'make', start: './serve' },
    [1, 2],
  ],
  'nixpacks.toml': [
    { 'nixpacks.toml': '[phases.build]\ncmds = ["make"]\n[start]\ncmd = "./serve"\n' },
    'its build is `make`, its command is `./serve`.',
    { build: 'make', start: './serve' },
    [2, 4],
  ],
  'railway.toml': [
    { 'railway.toml': '[deploy]\nstartCommand = "./serve"\n' },
    'its command is `./serve`.',
    { start: './serve' },
    [2],
  ],
  'heroku.yml': [
    { 'heroku.yml': 'run:\n  web: ./serve\n' },
    'its command is `./serve`.',
    { start: './serve' },
    [2],
  ],
  'fly.toml': [
    { 'fly.toml': '[processes]\napp = "./serve"\n[http_service]\ninternal_port = 8080\n' },
    'its command is `./serve`, its port is 8080.',
    { start: './serve' },
    [2, 4],
  ],
  'netlify.toml': [
    { 'netlify.toml': '[build]\ncommand = "make site"\npublish = "out"\n' },
    'its build is `make site`, it publishes out.',
    { build: 'make site', static: { folder: 'out' } },
    [2, 3],
  ],
  'vercel.json': [
    { 'vercel.json': '{"outputDirectory": "out"}' },
    'it publishes out.',
    { static: { folder: 'out' } },
    [1],
  ],
  'a devcontainer': [
    { '.devcontainer/devcontainer.json': '{\n // on start\n "postStartCommand": "./serve",}' },
    'its command is `./serve`.',
    { start: './serve' },
    [3],
  ],
}

describe('an app that only other tools know how to start is explained by their file:', () => {
  test.each(Object.entries(ROWS))('%s', async (_, [files, says, berthJson, lines]) => {
    const found = await detect(files)
    expect(String(found.problem?.message)).toContain(says)
    expect(found.berthJson).toEqual(berthJson)
    expect(found.evidence.map(({ line }) => line)).toEqual(lines)
    if (berthJson !== null) expect(String(found.problem?.message)).toContain(JSON.stringify(berthJson))
  })
})

test('a database that such a file names is one warning with the remedy', async () => {
  const { warnings } = await detect({
    'compose.yml':
      'services:\n  a: {image: "bitnami/postgresql"}\n  b: {image: redis}\n  c: {image: postgres}\n',
  })
  expect(warnings).toEqual([
    'compose.yml names PostgreSQL, Redis, which berth does not run: start it on this machine, let servers reach it by "berth serve --server-hosts 5432,6379", and give the app its address as a secret.',
  ])
})

test('a file that such a file names outside of the source is a warning', async () => {
  const { warnings } = await detect({
    'compose.yml': 'services:\n  a: {build: ., env_file: [a/../../.env, "in/../.env"]}\n',
  })
  expect(warnings).toEqual([
    'compose.yml names a/../../.env, which lies outside of the source; it was not read.',
  ])
})

test.each([
  'compose.yaml',
  'vercel.json',
  'fly.toml',
  'render.yaml',
  'railpack.json',
  '.devcontainer/devcontainer.json',
])('a broken %s stops nothing', async (name) => {
  const { kind, problem } = await detect({ [name]: '{"a": [', 'index.html': '' })
  expect([kind, problem]).toEqual(['static files', null])
})
