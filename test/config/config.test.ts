import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { COMPUTE_DEFAULTS, COMPUTE_OPTIONS } from '../../src/config/compute.ts'
import { CONFIG_OPTIONS, type Config, environmentName } from '../../src/config/config.ts'
import { loadConfig } from '../../src/config/load.ts'
import { StartupError, UsageError } from '../../src/errors.ts'
import { configuredPlan } from '../../src/resources/accounts/configured-plan.ts'

/** Where the settings of one test come from. */
interface Given {
  flags?: Record<string, unknown>
  env?: Record<string, string>
  /** The content of berth.config.json; text is written as it stands. */
  file?: object | string
}

function load({ flags = {}, env = {}, file }: Given = {}): Config & { cwd: string } {
  const cwd = mkdtempSync(join(tmpdir(), 'berth-config-'))
  try {
    if (file !== undefined)
      writeFileSync(join(cwd, 'berth.config.json'), typeof file === 'string' ? file : JSON.stringify(file))
    return { ...loadConfig({ flags, env, cwd }), cwd }
  } finally {
    rmSync(cwd, { recursive: true })
  }
}

const engine = (changes: Partial<Config['engine']>) => ({ ...COMPUTE_DEFAULTS.engine, ...changes })
const kubernetes = (changes: Partial<Config['kubernetes']>) => ({
  ...COMPUTE_DEFAULTS.kubernetes,
  ...changes,
})

/** For each option a text that is good, the setting it makes, another good text, and one that is bad. */
const CASES: Record<
  string,
  { setting: keyof Config; good: [string, unknown]; other: string; bad: string | null }
> = {
  host: { setting: 'host', good: ['0.0.0.0', '0.0.0.0'], other: '::1', bad: null },
  port: { setting: 'port', good: ['0', 0], other: '65535', bad: '65536' },
  data: { setting: 'dataDir', good: ['/d', '/d'], other: '/e', bad: null },
  ephemeral: { setting: 'ephemeral', good: ['true', true], other: 'false', bad: 'maybe' },
  snapshot: { setting: 'snapshot', good: ['/d/snapshots/s', '/d/snapshots/s'], other: '/e', bad: null },
  json: { setting: 'json', good: ['1', true], other: '0', bad: 'x' },
  isolation: { setting: 'isolation', good: ['none', 'none'], other: 'auto', bad: 'docker' },
  compute: { setting: 'compute', good: ['docker', 'docker'], other: 'local', bad: 'swarm' },
  engine: {
    setting: 'engine',
    good: ['unix:///run/a.sock', engine({ address: 'unix:///run/a.sock' })],
    other: 'ssh://user@host:22',
    bad: 'ssh://user:geheim@host',
  },
  'engine-tls': {
    setting: 'engine',
    good: ['/c', engine({ tlsDirectory: '/c' })],
    other: '/d',
    bad: null,
  },
  'engine-insecure': {
    setting: 'engine',
    good: ['true', engine({ insecure: true })],
    other: 'false',
    bad: 'maybe',
  },
  'engine-network': {
    setting: 'engine',
    good: ['berth', engine({ network: 'berth' })],
    other: 'n',
    bad: 'host',
  },
  'engine-runtime': {
    setting: 'engine',
    good: ['runsc', engine({ runtime: 'runsc' })],
    other: 'r',
    bad: null,
  },
  kubeconfig: {
    setting: 'kubernetes',
    good: ['/a:/b', kubernetes({ kubeconfig: ['/a', '/b'] })],
    other: '/c',
    bad: null,
  },
  'kubernetes-context': {
    setting: 'kubernetes',
    good: ['c', kubernetes({ context: 'c' })],
    other: 'd',
    bad: null,
  },
  'kubernetes-namespace': {
    setting: 'kubernetes',
    good: ['n', kubernetes({ namespace: 'n' })],
    other: 'm',
    bad: null,
  },
  'kubernetes-network': {
    setting: 'kubernetes',
    good: ['none', kubernetes({ network: 'none' })],
    other: 'pod',
    bad: 'host',
  },
  'kubernetes-storage-class': {
    setting: 'kubernetes',
    good: ['s', kubernetes({ storageClass: 's' })],
    other: 't',
    bad: null,
  },
  'kubernetes-runtime-class': {
    setting: 'kubernetes',
    good: ['g', kubernetes({ runtimeClass: 'g' })],
    other: 'h',
    bad: null,
  },
  'kubernetes-node-selector': {
    setting: 'kubernetes',
    good: ['pool=berth, disk=ssd', kubernetes({ nodeSelector: { pool: 'berth', disk: 'ssd' } })],
    other: '{"pool":"other"}',
    bad: 'pool',
  },
  'server-image': { setting: 'serverImage', good: ['a:1', 'a:1'], other: 'b', bad: null },
  'server-images': {
    setting: 'serverImages',
    good: ['python:*, node:22', ['python:*', 'node:22']],
    other: 'c',
    bad: null,
  },
  'server-images-by-tier': {
    setting: 'serverImagesByTier',
    good: ['{"large":"a:1"}', { large: 'a:1' }],
    other: 'small=b',
    bad: '[5',
  },
  'allow-root': { setting: 'allowRoot', good: ['true', true], other: 'false', bad: 'maybe' },
  pull: { setting: 'pull', good: ['missing', 'missing'], other: 'never', bad: 'always' },
  'server-lease': { setting: 'serverLeaseMs', good: ['2m', 120_000], other: '5s', bad: 'off' },
  'api-key': {
    setting: 'apiKey',
    good: ['sk_live_12345678', 'sk_live_12345678'],
    other: 'sk_live_abcdefgh',
    bad: 'abc',
  },
  'rng-seed': { setting: 'rngSeed', good: ['7', 7], other: '8', bad: '1.5' },
  freeze: {
    setting: 'freeze',
    good: ['2030-01-01T00:00:00Z', 1_893_456_000_000],
    other: '2031-01-01',
    bad: 'then',
  },
  'expose-control': { setting: 'exposeControl', good: ['true', true], other: 'false', bad: 'maybe' },
  'allow-local-webhooks': {
    setting: 'allowLocalWebhooks',
    good: ['true', true],
    other: 'false',
    bad: 'maybe',
  },
  'project-ports': {
    setting: 'projectPorts',
    good: ['5000-5010', { first: 5000, last: 5010 }],
    other: '5000-5000',
    bad: '5010-5000',
  },
  'source-folders': { setting: 'sourceFolders', good: ['/a:/b', ['/a', '/b']], other: '/c', bad: null },
  'npm-registry': {
    setting: 'npmRegistry',
    good: ['https://npm.example/a/', 'https://npm.example/a'],
    other: 'http://127.0.0.1:4873',
    bad: 'https://user:secret@npm.example',
  },
  outbound: { setting: 'outbound', good: ['list', 'list'], other: 'none', bad: 'some' },
  'outbound-hosts': {
    setting: 'outboundHosts',
    good: ['example.com:443,10.0.0.0/8', ['example.com:443', '10.0.0.0/8']],
    other: '*.example.com',
    bad: 'example.com,http://x',
  },
  'server-hosts': { setting: 'serverHosts', good: ['5432, 6379', [5432, 6379]], other: '1', bad: '5432,0' },
  'spare-servers': { setting: 'spareServers', good: ['0', 0], other: '3', bad: '101' },
  'allow-unix-sockets': { setting: 'allowUnixSockets', good: ['1', true], other: '0', bad: 'x' },
  'allow-local-sources': { setting: 'allowLocalSources', good: ['1', true], other: '0', bad: 'x' },
  'public-host': { setting: 'publicHost', good: ['Box.Local', 'box.local'], other: 'b', bad: null },
  'log-level': { setting: 'logLevel', good: ['silent', 'silent'], other: 'debug', bad: 'loud' },
  'journal-size': { setting: 'journalSize', good: ['0', 0], other: '100000', bad: '-1' },
  'execution-idle': { setting: 'executionIdleMs', good: ['30m', 1_800_000], other: 'off', bad: 'later' },
  'mcp-output': { setting: 'mcpOutput', good: ['30000', 30_000], other: '1000000', bad: '100' },
  'terminal-idle': { setting: 'terminalIdleMs', good: ['15m', 900_000], other: 'off', bad: 'later' },
  'idle-timeout': { setting: 'idleTimeoutMs', good: ['15m', 900_000], other: 'off', bad: 'later' },
  plan: { setting: 'plan', good: ['{"servers":5}', { servers: 5 }], other: '{"servers":6}', bad: '[5' },
  // The kinds that need more to be said have a test of their own.
  agent: { setting: 'agent', good: ['scripted', 'scripted'], other: 'scripted', bad: 'robot' },
  'openai-base-url': {
    setting: 'openaiBaseUrl',
    good: ['http://127.0.0.1:11434/v1/', 'http://127.0.0.1:11434/v1'],
    other: 'https://models.example',
    bad: 'https://user:secret@models.example',
  },
  'openai-api-key': { setting: 'openaiApiKey', good: ['k', 'k'], other: 'l', bad: null },
  'openai-model': { setting: 'openaiModel', good: ['m', 'm'], other: 'n', bad: null },
  'anthropic-base-url': {
    setting: 'anthropicBaseUrl',
    good: ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    other: 'https://models.example',
    bad: 'models.example',
  },
  'anthropic-api-key': { setting: 'anthropicApiKey', good: ['k', 'k'], other: 'l', bad: null },
  'anthropic-model': { setting: 'anthropicModel', good: ['m', 'm'], other: 'n', bad: null },
  'agent-command': { setting: 'agentCommand', good: ['coder -p', 'coder -p'], other: 'x', bad: null },
  'agent-input': { setting: 'agentInput', good: ['stdin', 'stdin'], other: 'argument', bad: 'telepathy' },
  'agent-question': { setting: 'agentQuestion', good: ['^Q: (.*)', /^Q: (.*)/u], other: 'x', bad: '(' },
  'agent-limits': {
    setting: 'agentLimits',
    good: [
      '{"steps":5,"tokens":1000,"context":8000,"time":"90s","cost":0.5,"input_price":3,"output_price":15}',
      { steps: 5, tokens: 1_000, context: 8_000, timeMs: 90_000, cost: 0.5, inputPrice: 3, outputPrice: 15 },
    ],
    other: '{"steps":6}',
    bad: 'stairs',
  },
  fixtures: {
    setting: 'fixtures',
    good: ['/a.json:/b.yaml', ['/a.json', '/b.yaml']],
    other: '/c',
    bad: null,
  },
}

/** Returns what has a file set an option: some do so only if somebody names the file. */
const named = (name: string) =>
  COMPUTE_OPTIONS.some((option) => option.name === name) ? { BERTH_CONFIG: 'berth.config.json' } : {}

test('every option is covered here', () => {
  expect(Object.keys(CASES).sort()).toEqual(CONFIG_OPTIONS.map(({ name }) => name).sort())
})

test.each(Object.entries(CASES))(
  '--%s: a flag beats the variable, the variable the file, the file the default',
  (name, { setting, good: [text, value], other }) => {
    const variable = environmentName(name)
    if (other !== text) expect(load()[setting]).not.toEqual(value as never)
    const env = named(name)
    expect(load({ env, file: { [name]: text } })[setting]).toEqual(value as never)
    expect(load({ env: { ...env, [variable]: text }, file: { [name]: other } })[setting]).toEqual(
      value as never,
    )
    expect(load({ flags: { [name]: text }, env: { [variable]: other } })[setting]).toEqual(value as never)
  },
)

const REFUSED = Object.entries(CASES).flatMap(([name, { bad }]) =>
  bad === null ? [] : [[name, bad] as const],
)

test.each(REFUSED)('a bad --%s is refused, and the sentence names where it stands', (name, bad) => {
  expect(() => load({ flags: { [name]: bad } })).toThrow(UsageError)
  expect(() => load({ flags: { [name]: bad } })).toThrow(`--${name}: expected `)
  expect(() => load({ env: { [environmentName(name)]: bad } })).toThrow(StartupError)
  expect(() => load({ env: { [environmentName(name)]: bad } })).toThrow(`${environmentName(name)}: expected `)
  const env = named(name)
  expect(() => load({ env, file: { [name]: bad } })).toThrow(StartupError)
  expect(() => load({ env, file: { [name]: bad } })).toThrow(
    new RegExp(`berth\\.config\\.json, line 1, column ${name.length + 5}: "${name}": expected `),
  )
})

test.each(COMPUTE_OPTIONS.map(({ name }) => name))(
  'a file that was just found does not set --%s, which decides with which rights servers run',
  (name) => {
    const [text] = CASES[name]?.good ?? ['']
    expect(() => load({ file: { [name]: text } })).toThrow(StartupError)
    expect(() => load({ file: { [name]: text } })).toThrow(`"${name}": it decides where servers run`)
  },
)

test('an isolation is one of this machine, and nothing else can run servers with it', () => {
  expect(load({ flags: { isolation: 'landlock' } }).compute).toBe('local')
  expect(load({ flags: { isolation: 'auto', compute: 'docker' } }).compute).toBe('docker')
  expect(load({ flags: { isolation: 'none', compute: 'local' } }).compute).toBe('local')
  for (const given of [
    { flags: { isolation: 'none', compute: 'docker' } },
    { flags: { compute: 'kubernetes' }, env: { BERTH_ISOLATION: 'bubblewrap' } },
  ]) {
    expect(() => load(given)).toThrow(UsageError)
    expect(() => load(given)).toThrow('Leave out one of --isolation and --compute.')
  }
})

test('a password in the address of an engine is refused and not repeated', () => {
  for (const address of ['ssh://user:geheim@host', 'tcp://user:geheim@host:2376']) {
    expect(() => load({ flags: { engine: address } })).toThrow('without a password')
    expect(() => load({ flags: { engine: address } })).not.toThrow(/geheim/)
  }
})

test('an invalid plan stops the start with a sentence', () => {
  const { plan } = load({ file: { plan: { credits_per_hour: { small: -1 } } } })
  expect(() => configuredPlan(plan)).toThrow(StartupError)
  expect(() => configuredPlan(plan)).toThrow(
    /"credits_per_hour.small" in the plan: expected a number .* --plan, BERTH_PLAN/,
  )
  expect(configuredPlan({ servers: 7 })).toMatchObject({ servers: 7, monthly_cap: 1_000 })
})

test('a bad value behind one that beats it does no harm', () => {
  expect(load({ flags: { port: '1' }, env: { BERTH_PORT: 'x' } }).port).toBe(1)
})

test('a refused API key is not repeated', () => {
  for (const given of [{ flags: { 'api-key': 'geheim' } }, { env: { BERTH_API_KEY: 'geheim' } }]) {
    try {
      load(given)
      throw new Error('accepted')
    } catch (error) {
      expect(String(error)).toContain('sk_live_ followed by')
      expect(String(error)).not.toContain('geheim')
    }
  }
})

test('the master key comes from its variable alone, as base64 or hex, and a bad one is not repeated', () => {
  const bytes = Buffer.alloc(32, 7)
  for (const text of [bytes.toString('base64'), bytes.toString('hex'), ` ${bytes.toString('base64url')}\n`])
    expect(load({ env: { BERTH_MASTER_KEY: text } }).masterKey).toEqual(bytes)
  for (const unset of [undefined, ''])
    expect(load({ env: unset === undefined ? {} : { BERTH_MASTER_KEY: unset } }).masterKey).toBeNull()
  for (const bad of ['geheim', bytes.toString('hex').slice(1), Buffer.alloc(33).toString('base64')]) {
    expect(() => load({ env: { BERTH_MASTER_KEY: bad } })).toThrow(StartupError)
    expect(() => load({ env: { BERTH_MASTER_KEY: bad } })).toThrow(/32 bytes.*unset it\.$/)
    expect(() => load({ env: { BERTH_MASTER_KEY: bad } })).not.toThrow(bad)
  }
  expect(CONFIG_OPTIONS.map(({ name }) => name)).not.toContain('master-key')
})

test('without an option packages come from the registry that the machine’s npm uses, else from npm’s own', () => {
  expect(load().npmRegistry).toBe('https://registry.npmjs.org')
  for (const name of ['npm_config_registry', 'NPM_CONFIG_REGISTRY'])
    expect(load({ env: { [name]: 'https://npm.example/' } }).npmRegistry).toBe('https://npm.example')
  expect(() => load({ env: { BERTH_NPM_REGISTRY: 'https://u:geheim@npm.example' } })).not.toThrow(/geheim/)
  const env = { npm_config_registry: 'https://npm.example/', BERTH_NPM_REGISTRY: 'https://other.example' }
  expect(load({ env }).npmRegistry).toBe('https://other.example')
  expect(load({ env: { npm_config_registry: 'no address' } }).npmRegistry).toBe('https://registry.npmjs.org')
})

test('an agent that needs more than was said stops the start with what is missing', () => {
  const without = (flags: Record<string, string>) => () => load({ flags })
  expect(without({ agent: 'openai' })).toThrow(StartupError)
  expect(without({ agent: 'openai' })).toThrow(/--openai-model.*BERTH_OPENAI_MODEL/)
  expect(without({ agent: 'anthropic' })).toThrow(/--anthropic-model.*BERTH_ANTHROPIC_MODEL/)
  expect(without({ agent: 'command' })).toThrow(/--agent-command.*BERTH_AGENT_COMMAND/)
  expect(load({ flags: { agent: 'openai', 'openai-model': 'm' } }).agent).toBe('openai')
  expect(load({ flags: { agent: 'command', 'agent-command': 'c' } }).agent).toBe('command')
})

test('a limit of cost needs the prices that it goes by', () => {
  expect(() => load({ flags: { 'agent-limits': '{"cost":1}' } })).toThrow(/input_price/)
  expect(() => load({ flags: { 'agent-limits': '{"time":"soon"}' } })).toThrow('"time": expected a duration')
})

test('a refused model key is not repeated', () => {
  expect(() => load({ file: { openaiApiKey: 5 } })).toThrow(/"openaiApiKey": expected a text, got a number\./)
})

test('an empty variable counts as unset', () => {
  expect(load({ env: { BERTH_PORT: '' } }).port).toBe(4747)
})

test('the file takes the names of flags, camel case too, and values of their own type', () => {
  const config = load({
    file: { $schema: 'x', logLevel: 'warn', 'idle-timeout': '1h', port: 5000, ephemeral: true },
  })
  expect(config).toMatchObject({ logLevel: 'warn', idleTimeoutMs: 3_600_000, port: 5000, ephemeral: true })
})

test('an unknown key of the file is refused with the known ones', () => {
  expect(() => load({ file: { prot: 1 } })).toThrow(StartupError)
  expect(() => load({ file: { prot: 1 } })).toThrow(
    /line 1, column 2: "prot" is not a known field\. Did you mean port\? Known fields: .*port/,
  )
})

test('all mistakes of the file are reported, each with its line', () => {
  const file = '{\n  "port": 70000,\n  "agentLimits": {"steps": 0, "tokenz": 1},\n  "log-level": "wran"\n}'
  expect(() => load({ file })).toThrow(
    /line 2, column 11: "port": .* 65535, got 70000\. Line 3, column 28: "agentLimits\.steps": .* Line 3, column 31: "agentLimits\.tokenz" is not a known field.* Did you mean tokens\? Line 4, column 16: "log-level": .* Did you mean warn\? Correct it/,
  )
})

test('a key that comes twice is refused with the line of the second', () => {
  expect(() => load({ file: '{\n  "port": 5000,\n  "port": 5001\n}' })).toThrow(
    /berth\.config\.json, line 3, column 3: "port" is there twice: name it once\./,
  )
})

test('a file that is not a JSON object is refused', () => {
  expect(() => load({ file: '{' })).toThrow(
    /berth\.config\.json, line 1, column 2: expected a name in double quotes/,
  )
  expect(() => load({ file: '[]' })).toThrow(/must hold one JSON object/)
})

test('--config and BERTH_CONFIG name another file, which must exist', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'berth-config-'))
  try {
    writeFileSync(join(cwd, 'a.json'), '{"port":1}')
    writeFileSync(join(cwd, 'b.json'), '{"port":2}')
    expect(loadConfig({ flags: {}, env: { BERTH_CONFIG: 'a.json' }, cwd }).port).toBe(1)
    expect(loadConfig({ flags: { config: 'b.json' }, env: { BERTH_CONFIG: 'a.json' }, cwd }).port).toBe(2)
    expect(() => loadConfig({ flags: { config: 'c.json' }, env: {}, cwd })).toThrow(StartupError)
  } finally {
    rmSync(cwd, { recursive: true })
  }
})

test('the data folder is absolute, from the working directory', () => {
  const { dataDir, cwd } = load({ flags: { data: 'x' } })
  expect(dataDir).toBe(join(cwd, 'x'))
})

test.each([
  ['isolation', 'none', 'landlock'],
  ['allow-unix-sockets', true, false],
  ['host', '0.0.0.0', 'localhost'],
  ['openai-base-url', 'https://models.example/v1', 'http://127.0.0.1:11434/v1'],
  ['anthropic-base-url', 'https://models.example', 'http://[::1]:8080'],
])('a file that was just found is reported where it lets others in: %s', (name, opening, other) => {
  const setting = CASES[name]?.setting ?? 'host'
  const found = load({ file: { [name]: opening } })
  expect(found[setting]).toEqual(opening as never)
  expect(found.notes).toEqual([
    expect.stringContaining(
      `berth.config.json was found here and sets "${name}" to ${JSON.stringify(opening)}, which `,
    ),
  ])
  for (const given of [
    { flags: { config: 'berth.config.json' }, file: { [name]: opening } },
    { env: { BERTH_CONFIG: 'berth.config.json' }, file: { [name]: opening } },
    { flags: { [name]: opening }, file: { [name]: opening } },
    { file: { [name]: other } },
  ])
    expect(load(given).notes).toEqual([])
})

test('a file that sets every option is taken as it stands', () => {
  const file = join(import.meta.dir, '../../fixtures/config/every-option.json')
  const names = Object.keys(JSON.parse(readFileSync(file, 'utf8')))
  expect(names.map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)).sort()).toEqual(
    CONFIG_OPTIONS.map(({ name }) => name).sort(),
  )
  expect(loadConfig({ flags: { config: file }, env: {}, cwd: '/somewhere' })).toEqual({
    host: '127.0.0.1',
    port: 0,
    dataDir: '/somewhere/every-option',
    ephemeral: false,
    snapshot: '/somewhere/before/snapshots/nice',
    json: true,
    isolation: 'none',
    compute: 'local',
    engine: {
      address: 'unix:///run/docker.sock',
      tlsDirectory: '/somewhere/certificates',
      insecure: true,
      network: 'berth',
      runtime: 'runsc',
    },
    kubernetes: {
      kubeconfig: ['/somewhere/config'],
      context: 'here',
      namespace: 'servers',
      network: 'none',
      storageClass: 'fast',
      runtimeClass: 'gvisor',
      nodeSelector: { pool: 'berth' },
    },
    serverImage: 'berth-server:mine',
    serverImages: ['python:*'],
    serverImagesByTier: { large: 'python:3.13' },
    allowRoot: true,
    pull: 'missing',
    serverLeaseMs: 90_000,
    apiKey: 'sk_live_every_option',
    masterKey: null,
    notes: [],
    rngSeed: 7,
    freeze: Date.UTC(2030, 0, 1),
    exposeControl: true,
    allowLocalWebhooks: true,
    projectPorts: { first: 4700, last: 4746 },
    sourceFolders: ['/somewhere/repositories'],
    npmRegistry: 'http://127.0.0.1:4873',
    outbound: 'list',
    outboundHosts: ['example.com:443', '10.0.0.0/8'],
    serverHosts: [5432, 6379],
    allowUnixSockets: true,
    spareServers: 2,
    allowLocalSources: true,
    publicHost: 'berth.test',
    logLevel: 'warn',
    idleTimeoutMs: 900_000,
    terminalIdleMs: 7_200_000,
    executionIdleMs: 1_800_000,
    mcpOutput: 8_000,
    journalSize: 50,
    plan: { servers: 5, credits_per_hour: { large: 2.5 } },
    agent: 'anthropic',
    openaiBaseUrl: 'http://127.0.0.1:11434/v1',
    openaiApiKey: 'local',
    openaiModel: 'small-coder',
    anthropicBaseUrl: 'http://127.0.0.1:8080',
    anthropicApiKey: 'local',
    anthropicModel: 'large-coder',
    agentCommand: 'coder -p',
    agentInput: 'stdin',
    agentQuestion: /\?$/u,
    agentLimits: {
      steps: 50,
      tokens: 100_000,
      context: 30_000,
      timeMs: 600_000,
      cost: 2,
      inputPrice: 3,
      outputPrice: 15,
    },
    fixtures: ['/somewhere/scenarios.yaml'],
  })
})
