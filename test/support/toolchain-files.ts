import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Writes a file, and the directories above it. */
export function write(path: string, text = '', mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, mode)
}

/** Writes a program that prints a text whatever it is asked. */
export const program = (path: string, text: string): void => write(path, `#!/bin/sh\necho '${text}'\n`, 0o755)

/** Makes a link, in place of a file that is there, and the directories above it. */
export function link(path: string, target: string): void {
  mkdirSync(dirname(path), { recursive: true })
  rmSync(path, { force: true })
  symlinkSync(target, path)
}

/** Makes directories with the files by which toolchains are known, and programs that print their versions. */
export const MAKERS = {
  go(prefix: string, version: string) {
    program(join(prefix, 'bin/go'), `go version go${version} linux/amd64`)
    write(join(prefix, 'VERSION'), `go${version}\ntime 2026-01-01T00:00:00Z\n`)
    write(join(prefix, 'pkg/tool/linux_amd64/compile'))
    write(join(prefix, 'src/fmt/print.go'), 'of the toolchain')
  },
  java(prefix: string, version: string) {
    program(join(prefix, 'bin/java'), `openjdk version "${version}"`)
    write(join(prefix, 'release'), `IMPLEMENTOR="Some"\nJAVA_VERSION="${version}"\n`)
    write(join(prefix, 'lib/modules'))
    write(join(prefix, 'conf/security/java.security'), 'of the toolchain')
    write(join(prefix, 'conf/management/management.properties'))
  },
  mvn(prefix: string, version: string) {
    program(join(prefix, 'bin/mvn'), `Apache Maven ${version}`)
    write(join(prefix, `lib/maven-core-${version}.jar`))
    write(join(prefix, 'boot/plexus-classworlds.jar'), 'of the toolchain')
    write(join(prefix, 'conf/logging/simplelogger.properties'))
  },
  gradle(prefix: string, version: string) {
    program(join(prefix, 'bin/gradle'), `Gradle ${version}`)
    write(join(prefix, `lib/gradle-core-${version}.jar`), 'of the toolchain')
    write(join(prefix, 'init.d/readme.txt'))
  },
  node(prefix: string, version: string) {
    const [major, minor, patch] = version.split('.')
    program(join(prefix, 'bin/node'), `v${version}`)
    const header = `#define NODE_MAJOR_VERSION ${major}\n#define NODE_MINOR_VERSION ${minor}\n#define NODE_PATCH_VERSION ${patch}\n`
    write(join(prefix, 'include/node/node_version.h'), header)
    write(join(prefix, 'lib/node_modules/npm/package.json'), 'of the toolchain')
  },
  python(prefix: string, version: string) {
    const minor = version.split('.').slice(0, 2).join('.')
    program(join(prefix, `bin/python${minor}`), `Python ${version}`)
    link(join(prefix, 'bin/python3'), `python${minor}`)
    write(join(prefix, `lib/python${minor}/os.py`), 'of the toolchain')
    write(join(prefix, `include/python${minor}/patchlevel.h`), `#define PY_VERSION "${version}"\n`)
  },
  ruby(prefix: string, version: string) {
    const api = version.replace(/\d+$/, '0')
    program(join(prefix, 'bin/ruby'), `ruby ${version}`)
    const settings = `CONFIG["RUBY_PROGRAM_VERSION"] = "${version}"\n`
    write(join(prefix, `lib/ruby/${api}/x86_64-linux/rbconfig.rb`), settings)
    write(join(prefix, `lib/ruby/${api}/set.rb`), 'of the toolchain')
  },
  cargo(prefix: string, version: string) {
    program(join(prefix, 'bin/cargo'), `cargo ${version}`)
    program(join(prefix, 'bin/rustc'), `rustc ${version}`)
    write(join(prefix, 'lib/rustlib/components'), 'of the toolchain')
    const manifest = `[pkg.cargo]\nversion = "0.1.0 (x)"\n[pkg.rust]\nversion = "${version} (x)"\n`
    write(join(prefix, 'lib/rustlib/multirust-channel-manifest.toml'), manifest)
  },
  php(prefix: string, version: string) {
    program(join(prefix, 'bin/php'), `PHP ${version} (cli)`)
    write(join(prefix, 'include/php/main/php_version.h'), `#define PHP_VERSION "${version}"\n`)
    write(join(prefix, 'etc/php.ini'), 'of the toolchain')
  },
  deno(prefix: string, version: string) {
    program(join(prefix, 'bin/deno'), `deno ${version}`)
  },
}
