import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Authority, type Identity, makeAuthority } from '../support/authority.ts'
import { firstLine, type KeyedInfo } from '../support/berth.ts'
import { EngineRig, missingForEngine } from '../support/engines/engine-rig.ts'
import { projectPorts } from '../support/ports.ts'
import { attempt, processesOf, until } from '../support/processes.ts'
import { command as berth, cleanEnvironment, NO_SPARE_SERVERS } from '../support/serve.ts'

/** Where they listen, in the engine's own network. */
const TLS_ADDRESS = 'tcp://127.0.0.1:2376'
const SSH_PORT = '2222'

/** Prints lines for 10 seconds, and what they are. */
const LINES = 200_000
const PRINT = `for i in $(seq 0 49); do seq $((i * ${LINES / 50})) $((i * ${LINES / 50} + ${LINES / 50 - 1})); sleep 0.2; done`
const PRINTED = Array.from({ length: LINES }, (_, n) => `${n}\n`).join('')

const missing = missingForEngine('docker')
if (missing !== null) console.error(`SKIP engines that are reached over TLS and ssh: ${missing}`)
const lacksSsh = Bun.which('ssh') === null || Bun.which('sshd') === null
if (lacksSsh)
  console.error('SKIP engines that are reached over ssh: apt-get install openssh-client openssh-server.')

describe.skipIf(missing !== null)('an engine', () => {
  let directory: string
  let rig: EngineRig

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'berth-remote-'))
    rig = await EngineRig.start('docker')
    await rig.prepare()
  }, 300_000)
  afterAll(async () => {
    await rig?.[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  }, 60_000)

  /** Starts berth in the network of the engine, which reaches it there alone. */
  const start = (args: readonly string[], env: Record<string, string>) =>
    Bun.spawn([...rig.entering, ...berth, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...cleanEnvironment(), ...env },
    })
  /** Runs a command of berth. @returns its exit code and what it says */
  async function run(args: readonly string[], env: Record<string, string> = {}): Promise<[number, string]> {
    const child = start(args, env)
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
    return [await child.exited, output + errors]
  }

  /** A berth whose servers are on an engine at an address, until the end of a block. */
  async function serve(name: string, address: string, env: Record<string, string>) {
    const data = join(directory, name)
    const child = start(
      [
        ...['serve', '--json', '--port', '0', '--data', data, '--compute', 'docker', '--engine', address],
        ...['--project-ports', projectPorts(), ...NO_SPARE_SERVERS],
      ],
      env,
    )
    const line = await firstLine(child.stdout)
    if (line === null) throw new Error(await child.stderr.text())
    return {
      data,
      info: JSON.parse(line) as KeyedInfo,
      /** Prints what a command on a server prints. */
      exec: (server: string, command: string) => run(['exec', '--data', data, server, command]),
      async [Symbol.asyncDispose]() {
        child.kill('SIGTERM')
        await child.exited
      },
    }
  }

  describe('at tcp:// with TLS', () => {
    let ours: Authority
    let other: Authority
    /** Writes a directory of certificates, as --engine-tls takes it. */
    const put = (name: string, { ca }: { ca: string }, { cert, key }: Identity): string => {
      const place = join(directory, name)
      mkdirSync(place, { recursive: true })
      for (const [file, content] of Object.entries({ ca, cert, key }))
        writeFileSync(join(place, `${file}.pem`), content)
      return place
    }
    const restart = async (certificates: string | null): Promise<void> => {
      await rig.endDaemon('SIGTERM')
      const [ca, cert, key] = ['ca', 'cert', 'key'].map((name) => join(certificates ?? '', `${name}.pem`))
      const tls = ['--tlsverify', `--tlscacert=${ca}`, `--tlscert=${cert}`, `--tlskey=${key}`]
      await rig.startDaemon('data', certificates === null ? [] : [...tls, '--host', TLS_ADDRESS])
    }
    /** What berth says of the engine with a directory of certificates. */
    const described = (certificates: string) =>
      run(['engine', '--engine', TLS_ADDRESS], { BERTH_ENGINE_TLS: certificates })
    const client = 'DNS:client.test'

    beforeAll(async () => {
      ours = makeAuthority()
      other = makeAuthority()
      await restart(put('engine', ours, ours.issue('IP:127.0.0.1')))
    }, 60_000)
    afterAll(() => restart(null), 60_000)

    test('runs servers for who has a certificate of its authority, and their output arrives whole', async () => {
      const env = { BERTH_ENGINE_TLS: put('right', ours, ours.issue(client)) }
      await using running = await serve('tls', TLS_ADDRESS, env)
      const [, created] = await run(['servers', 'create', '-q', '--data', running.data])
      const server = created.trim()
      const output = running.exec(server, PRINT)
      const cuts = await whileIt(output, () => rig.killCarriers())
      expect(await output).toEqual([0, PRINTED])
      expect(cuts).toBeGreaterThan(1)
    }, 90_000)

    test.each([
      [
        'whose certificate is of another authority than that in ca.pem',
        () => put('other', other, ours.issue(client)),
        /its certificate is not of the authority in ca\.pem\. Name a directory with the ca\.pem of its authority/,
      ],
      [
        'that is shown a certificate of another authority',
        () => put('of-other', ours, other.issue(client)),
        /it has refused the certificate in cert\.pem, .* is of CN=Test authority .*: name a directory with one that holds, of the authority that the engine trusts/,
      ],
      [
        'that is shown an expired certificate',
        () => put('expired', ours, ours.issue(client, -1)),
        /it has refused the certificate in cert\.pem, .* valid until .* GMT: name a directory with one that holds/,
      ],
      [
        'that is to be shown a certificate without its key',
        () => put('pairs', ours, { ...ours.issue(client), key: ours.issue(client).key }),
        /cert\.pem and key\.pem of --engine-tls are no certificate with its key \(they are of two pairs\)\. Take both from/,
      ],
    ])('%s is refused, with cause and remedy', async (_, certificates, sentence) => {
      const [status, said] = await described(certificates())
      expect(status).toBe(1)
      expect(said).toStartWith(`berth: The engine at ${TLS_ADDRESS} cannot be reached: `)
      expect(said).toMatch(sentence)
      expect(said).not.toMatch(/PRIVATE KEY|BEGIN|[A-Za-z0-9+/]{40}/)
    })

    test.each([
      ['has expired', 'IP:127.0.0.1', -1, /its certificate has expired\. Give it a new one/],
      [
        'is for another name',
        'DNS:other.test',
        1,
        /its certificate is for other names than that of its address\. Name it/,
      ],
    ])(
      'whose certificate %s is refused, with cause and remedy',
      async (_, names, days, sentence) => {
        await restart(put(names, ours, ours.issue(names, days)))
        const [status, said] = await described(put('right', ours, ours.issue(client)))
        expect(status).toBe(1)
        expect(said).toMatch(sentence)
      },
      60_000,
    )
  })

  describe.skipIf(lacksSsh)('at ssh://', () => {
    const at = (name: string): string => join(directory, 'ssh', name)
    /** Has berth find an ssh that knows the server of these tests, and nothing of the person who runs them. */
    const path = () => ({ PATH: `${at('bin')}:${process.env.PATH}` })
    const address = (): string => `ssh://root@127.0.0.1:${SSH_PORT}${rig.socket}`
    let daemon: Bun.Subprocess

    const makeKey = async (name: string): Promise<void> => {
      const child = Bun.spawn(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', at(name)])
      expect(await child.exited).toBe(0)
    }
    /** Has ssh use a key and a list of hosts. */
    const configure = (key: string, hosts: string): void =>
      writeFileSync(
        at('config'),
        `Host *\nIdentityFile ${at(key)}\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile ${at(hosts)}\nGlobalKnownHostsFile none\n`,
      )

    beforeAll(async () => {
      mkdirSync(at('bin'), { recursive: true })
      for (const name of ['host', 'person', 'stranger']) await makeKey(name)
      const lines = [
        ...[`ListenAddress 127.0.0.1:${SSH_PORT}`, `HostKey ${at('host')}`, 'PidFile none', 'UsePAM no'],
        ...[`AuthorizedKeysFile ${at('person.pub')}`, 'StrictModes no', 'PermitRootLogin prohibit-password'],
      ]
      writeFileSync(at('sshd_config'), `${lines.join('\n')}\n`)
      const known = async (key: string): Promise<string> =>
        `[127.0.0.1]:${SSH_PORT} ${await Bun.file(at(`${key}.pub`)).text()}`
      writeFileSync(at('known'), await known('host'))
      writeFileSync(at('changed'), await known('stranger'))
      writeFileSync(at('bin/ssh'), `#!/bin/sh\nexec ${Bun.which('ssh')} -F ${at('config')} "$@"\n`)
      chmodSync(at('bin/ssh'), 0o755)
      // It wants an empty directory of its own there.
      const script = `mount -t tmpfs none /run && mkdir -p /run/sshd && exec ${Bun.which('sshd')} -D -e -f ${at('sshd_config')}`
      const log = Bun.file(at('log'))
      daemon = Bun.spawn([...rig.entering, 'unshare', '--mount', 'sh', '-c', script], {
        stdio: ['ignore', log, log],
      })
      await until(async () => (await log.text()).includes('listening'), 'sshd')
    }, 60_000)
    afterAll(async () => {
      daemon?.kill()
      await daemon?.exited
    })

    test('runs servers; their output arrives whole while ssh is killed again and again', async () => {
      configure('person', 'known')
      await using running = await serve('over-ssh', address(), path())
      const [, created] = await run(['servers', 'create', '-q', '--data', running.data])
      const server = created.trim()
      expect(await running.exec(server, 'echo kept > file; cat file')).toEqual([0, 'kept\n'])
      const output = running.exec(server, PRINT)
      const cuts = await whileIt(output, () => {
        const tunnels = processesOf(running.data).filter((line) => line.includes(' -L '))
        for (const line of tunnels) attempt(() => String(process.kill(Number.parseInt(line, 10), 'SIGKILL')))
        return tunnels.length
      })
      expect(await output).toEqual([0, PRINTED])
      expect(cuts).toBeGreaterThan(1)
      expect(await running.exec(server, 'cat file')).toEqual([0, 'kept\n'])
    }, 90_000)

    test.each([
      ['that does not take the key', 'stranger', 'known', 'Permission denied (publickey'],
      ['with another key than it had', 'person', 'changed', 'Host key verification failed'],
      ['that nobody has seen before', 'person', 'nobody', 'Host key verification failed'],
    ])('%s is refused, with what ssh says and what to do', async (_, key, hosts, cause) => {
      configure(key, hosts)
      const [status, said] = await run(['engine', '--engine', address()], path())
      expect(status).toBe(1)
      expect(said).toStartWith(`berth: The engine at ${address()} cannot be reached: ssh did not connect (`)
      expect(said).toContain(cause)
      expect(said).toContain(`Try "ssh -p ${SSH_PORT} -l root 127.0.0.1" by hand: it must ask nothing`)
    })
  })
})

/** Does something every other second until an operation ends. @returns how often it did, as it says */
async function whileIt(operation: Promise<unknown>, act: () => number): Promise<number> {
  let done = 0
  const timer = setInterval(() => {
    done += act()
  }, 2_000)
  await operation.catch(() => {})
  clearInterval(timer)
  return done
}
