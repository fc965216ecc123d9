import { describe, expect, test } from 'bun:test'
import { lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sandbox } from '../../../src/compute/sandbox.ts'
import type { Isolation } from '../../../src/config/config.ts'
import { Bench, driverOn, LIMITS, type Result, run, type Subject, TEST_PATH } from '../bench.ts'
import { sharedServer } from './shared-server.ts'

/** Runs a command with berth's own tools in front: they come last in the PATH, and a machine may have its own. */
const runWithTools = (sandbox: Sandbox, command: string): Promise<Result> =>
  run(sandbox, `PATH="\${PATH##*:}:$PATH"; ${command}`)

/** The tools that every sandbox has. */
export function toolTests(name: Subject): void {
  describe('a sandbox has Bun', () => {
    const server = sharedServer(name)

    test('as bun and bunx, whether the machine has it or not', async () => {
      const sandbox = server()
      const command = 'bun --version && bunx --version && bun -e "console.log(6 * 7)"'
      const { stdout } = await runWithTools(sandbox, command)
      expect(stdout).toBe(`${Bun.version}\n${Bun.version}\n42\n`)
    })

    test('as node, with its version, a script, an expression, standard input and arguments', async () => {
      const sandbox = server()
      await write(sandbox, 'server.js', 'console.log(process.argv.slice(2).join())')
      const commands = [
        'node --version',
        'node -v',
        'node -p "1 + 1"',
        'node server "a b" c',
        `echo "console.log('in')" | node`,
        `echo "console.log(process.argv.length)" | node - x`,
      ]
      const { stdout, stderr } = await runWithTools(sandbox, commands.join(' && '))
      const { version } = process
      expect({ stdout, stderr }).toEqual({ stdout: `${version}\n${version}\n2\na b,c\nin\n3\n`, stderr: '' })
    })

    test('behind #! of env, and a script of package.json', async () => {
      const sandbox = server()
      for (const tool of ['bun', 'node']) {
        await write(sandbox, tool, `#!/usr/bin/env ${tool}\nconsole.log(typeof process.version)`)
      }
      await write(sandbox, 'package.json', '{"scripts":{"go":"./bun && ./node && bun --version"}}')
      const { stdout } = await runWithTools(sandbox, 'chmod +x bun node && bun run --silent go')
      expect(stdout).toBe(`string\nstring\n${Bun.version}\n`)
    })

    test('that installs a package, bundles, and starts itself again', async () => {
      const sandbox = server()
      await write(sandbox, 'part/package.json', '{"name":"part","version":"1.0.0"}')
      await write(sandbox, 'part/index.js', 'module.exports = "of the package"')
      await write(sandbox, 'package.json', '{"dependencies":{"part":"file:./part"}}')
      await write(sandbox, 'main.js', 'console.log(require("part"))')
      const again =
        'require("node:child_process").execFileSync(process.execPath, ["out.js"], {stdio:"inherit"})'
      await write(sandbox, 'again.js', again)
      const command = 'bun install && bun build main.js --target=bun --outfile=out.js && bun again.js'
      expect((await runWithTools(sandbox, command)).stdout).toEndWith('of the package\n')
    })

    test('whose exit code and signals are its own', async () => {
      const sandbox = server()
      for (const tool of ['bun', 'node']) {
        expect((await runWithTools(sandbox, `${tool} -e "process.exit(7)"`)).exitCode).toBe(7)
        const killed = `${tool} -e "process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1e3)"`
        expect((await runWithTools(sandbox, `${killed} & wait $!; exit $?`)).exitCode).toBe(143)
      }
    })

    test('beside programs that commands install for themselves, which come before it', async () => {
      const sandbox = server()
      const make = (directory: string, name: string): string =>
        `mkdir -p ~/${directory} && printf '#!/bin/sh\\necho own\\n' > ~/${directory}/${name} && chmod +x ~/${directory}/${name}`
      await run(sandbox, make('.local/bin', 'of-pip'))
      await run(sandbox, make('go/bin', 'of-go'))
      await run(sandbox, make('.cargo/bin', 'of-cargo'))
      await run(sandbox, make('.local/bin', 'bunx'))
      const { stdout } = await run(sandbox, 'of-pip && of-go && of-cargo; command -v bunx')
      expect(stdout.split('\n').slice(0, 3)).toEqual(['own', 'own', 'own'])
      expect(stdout).toMatch(Bun.which('bunx', { PATH: TEST_PATH }) === null ? '.local/bin/bunx' : 'bunx')
      await run(sandbox, 'rm -r ~/.local ~/go ~/.cargo')
    })

    test('and no way to be root, which says how there is one', async () => {
      const { exitCode, stderr } = await run(server(), `[ "$(id -u)" = 0 ] || "\${PATH##*:}/sudo" -E true`)
      if (exitCode === 0) return
      expect(stderr).toStartWith('sudo: commands of this server are not root. "berth servers create --root"')
    })

    test('and no module in the place of the directory of Go, which older ones refuse', async () => {
      const go = async (env: Record<string, string> = {}): Promise<string> =>
        (
          await run(server(), 'echo "[$GOPATH][$GOBIN]"', {
            env: { BERTH_PACKAGES_CACHES: '/caches', ...env },
          })
        ).stdout
      expect(await go()).toBe('[][]\n')
      await run(server(), 'mkdir ~/go && touch ~/go/go.mod')
      expect(await go()).toBe(`[/caches/go][${server().home}/go/bin]\n`)
      expect(await go({ GOBIN: '/own' })).toBe('[/caches/go][/own]\n')
      expect(await go({ GOPATH: '/own' })).toBe('[/own][]\n')
      await run(server(), 'rm -r ~/go')
    })

    test('and python wherever python3 is', async () => {
      const { stdout } = await run(
        server(),
        'command -v python3 >/dev/null || exit 0; python -c "print(6 * 7)"',
      )
      expect(stdout).toBe(Bun.which('python3', { PATH: TEST_PATH }) === null ? '' : '42\n')
    })

    test('beside the files that say which distribution this is, without which pip fails', async () => {
      const look =
        'for file in os-release debian_version; do [ ! -e /etc/$file ] || cat /etc/$file >/dev/null || echo $file; done'
      expect((await run(server(), look)).stdout).toBe('')
    })

    test('and no variable that makes a berth into Bun, outside of Bun', async () => {
      const { stdout } = await run(server(), 'bun -e "" && env; tr "\\0" "\\n" < /proc/$PPID/environ')
      expect(stdout).not.toContain('BUN_BE_BUN')
    })
  })
}

/** The tools of a server of this machine, beside those of the machine. */
export function machineToolTests(name: Isolation): void {
  describe('a sandbox has Bun', () => {
    test('behind the tools of the machine, which come first', async () => {
      await using bench = new Bench(name)
      const folder = join(bench.dataDir, 'machine/bin')
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'node'), '#!/bin/sh\necho machine\n', { mode: 0o755 })
      const driver = driverOn(name, bench.dataDir, `${folder}:${TEST_PATH}`)
      const sandbox = await driver.start('srv_m', await driver.create('srv_m'), LIMITS)
      try {
        expect((await run(sandbox, 'node')).stdout).toBe('machine\n')
        expect((await runWithTools(sandbox, 'bun --version')).stdout).toBe(`${Bun.version}\n`)
      } finally {
        await sandbox.stop()
      }
    })

    test('also where the PATH names folders that are out of reach', async () => {
      await using bench = new Bench(name)
      const loop = join(bench.dataDir, 'loop')
      symlinkSync(loop, loop)
      const driver = driverOn(name, bench.dataDir, `${loop}/bin:${loop}:${TEST_PATH}`)
      expect(await driver.probe()).toMatchObject({ available: true })
      const sandbox = await driver.start('srv_m', await driver.create('srv_m'), LIMITS)
      try {
        expect((await run(sandbox, 'bun -e "console.log(1)"')).stdout).toBe('1\n')
      } finally {
        await sandbox.stop()
      }
    })

    // Where nothing is isolated everything can be changed.
    const isolated = name === 'none' ? () => {} : test
    isolated('that it cannot change', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const tool = '"$(command -v bun)"'
      for (const attempt of [
        `echo : > ${tool}`,
        `chmod u+w ${tool} && echo : > ${tool}`,
        `rm -f ${tool}`,
        `mv ${tool} old`,
        `touch "$(dirname ${tool})/other"`,
        `mv "$(dirname "$(dirname ${tool})")" gone`,
      ]) {
        expect(`${attempt}: ${(await runWithTools(sandbox, attempt)).exitCode === 0}`).toBe(
          `${attempt}: false`,
        )
      }
      expect((await runWithTools(sandbox, 'bun --version')).stdout).toBe(`${Bun.version}\n`)
    })

    test('written once: a later berth leaves it as it is', async () => {
      await using bench = new Bench(name)
      await (await bench.start()).stop()
      const before = entries(join(bench.dataDir, 'sandbox'))
      const driver = driverOn(name, bench.dataDir)
      await (await driver.start('srv_n', await driver.create('srv_n'), LIMITS)).stop()
      expect(before.map(([path]) => path)).toEqual([
        'bin/bun',
        'bin/bunx',
        'bin/node',
        ...(Bun.which('python3', { PATH: TEST_PATH }) === null ? [] : ['bin/python']),
        'etc/npm.conf',
        'lib/node',
      ])
      expect(entries(join(bench.dataDir, 'sandbox'))).toEqual(before)
    })
  })
}

/** The tools below a folder, each with its inode. */
const entries = (folder: string): [path: string, inode: number][] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .flatMap((path): [string, number][] => {
      const tool = /(?:bin|lib|etc)\/(?:bunx?|node|python|npm\.conf)$/.exec(path)
      return tool === null ? [] : [[tool[0], lstatSync(join(folder, path)).ino]]
    })
    .sort()

function write(sandbox: Parameters<typeof run>[0], path: string, text: string): Promise<Result> {
  const command = 'mkdir -p "$(dirname "$FILE")" && cat > "$FILE"'
  return run(sandbox, command, { env: { FILE: path }, stdin: new TextEncoder().encode(text) })
}
