import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate and its key, as PEM. */
export interface Identity {
  cert: string
  key: string
}

/** A certificate authority made for one test run. */
export interface Authority {
  /** Its certificate, as PEM. */
  ca: string
  /** Issues a certificate. @param names such as `DNS:hooks.test` or `IP:127.0.0.1` @param days until it expires, which may be over */
  issue(names: string, days?: number): Identity
}

/** Makes an authority with the openssl of this machine. */
export function makeAuthority(): Authority {
  using folder = temporaryFolder()
  openssl(
    folder.path,
    'req',
    '-x509',
    '-nodes',
    ...NEW_KEY,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '1',
    ...subject('Test authority'),
  )
  const ca = folder.read('ca.pem')
  const caKey = folder.read('ca.key')
  return {
    ca,
    issue(names, days = 1) {
      using folder = temporaryFolder()
      writeFileSync(join(folder.path, 'ca.pem'), ca)
      writeFileSync(join(folder.path, 'ca.key'), caKey)
      writeFileSync(join(folder.path, 'names'), `subjectAltName=${names}\n`)
      openssl(
        folder.path,
        'req',
        '-nodes',
        ...NEW_KEY,
        '-keyout',
        'key',
        '-out',
        'request',
        ...subject('receiver'),
      )
      openssl(
        folder.path,
        'x509',
        '-req',
        '-in',
        'request',
        '-CA',
        'ca.pem',
        '-CAkey',
        'ca.key',
        '-CAcreateserial',
        '-out',
        'cert',
        '-days',
        String(days),
        '-extfile',
        'names',
      )
      return { cert: folder.read('cert'), key: folder.read('key') }
    },
  }
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']

const subject = (name: string): string[] => ['-subj', `/CN=${name}`]

function openssl(cwd: string, ...args: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(['openssl', ...args], { cwd, stdout: 'ignore', stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`)
}

function temporaryFolder() {
  const path = mkdtempSync(join(tmpdir(), 'berth-authority-'))
  return {
    path,
    read: (name: string) => readFileSync(join(path, name), 'utf8'),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  }
}
