import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A certificate of the cluster: whom it names, and the addresses at which its owner serves. */
export interface CertificateRequest {
  readonly name: string
  /** As openssl writes it: `/O=GROUP/CN=USER`. */
  readonly subject: string
  /** Such as `IP:10.0.0.1`. */
  readonly addresses?: readonly string[]
}

/** The certificates and keys of a cluster, all signed by one authority, as files in a directory. */
export class Certificates {
  readonly #directory: string

  /** @param directory exists and is empty */
  constructor(directory: string) {
    this.#directory = directory
  }

  /** Returns the path of a file: `NAME.crt`, `NAME.key` or `NAME.conf`, a kubeconfig. */
  path(file: string): string {
    return join(this.#directory, file)
  }

  /** Makes the authority, the key pair that signs tokens of service accounts, and a certificate for each request. */
  async make(server: string, requests: readonly CertificateRequest[]): Promise<void> {
    for (const { name } of [{ name: 'ca' }, { name: 'tokens' }, ...requests]) this.#makeKey(name)
    await this.#openssl('req', '-x509', '-new', '-key', 'ca.key', '-subj', '/CN=tests', '-out', 'ca.crt')
    await Promise.all(requests.map((request) => this.#sign(request)))
    const text = (file: string): Promise<string> => Bun.file(this.path(file)).text()
    const base64 = async (file: string): Promise<string> => Buffer.from(await text(file)).toString('base64')
    for (const { name } of requests) {
      const user = {
        'client-certificate-data': await base64(`${name}.crt`),
        'client-key-data': await base64(`${name}.key`),
      }
      const cluster = { server, 'certificate-authority-data': await base64('ca.crt') }
      const config = {
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'tests' },
        clusters: [{ name: 'tests', cluster }],
        users: [{ name, user }],
        contexts: [{ name: 'tests', context: { cluster: 'tests', user: name } }],
      }
      writeFileSync(this.path(`${name}.conf`), JSON.stringify(config))
    }
  }

  #makeKey(name: string): void {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
    writeFileSync(this.path(`${name}.key`), privateKey.export({ type: 'sec1', format: 'pem' }), {
      mode: 0o600,
    })
    writeFileSync(this.path(`${name}.pub`), publicKey.export({ type: 'spki', format: 'pem' }))
  }

  async #sign({ name, subject, addresses = [] }: CertificateRequest): Promise<void> {
    const names = addresses.length === 0 ? [] : [`subjectAltName=${addresses.join(',')}`]
    writeFileSync(this.path(`${name}.ext`), ['extendedKeyUsage=serverAuth,clientAuth', ...names].join('\n'))
    await this.#openssl('req', '-new', '-key', `${name}.key`, '-subj', subject, '-out', `${name}.csr`)
    const serial = String(Math.floor(Math.random() * 2 ** 48) + 1)
    const authority = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-set_serial', serial]
    await this.#openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      ...authority,
      '-extfile',
      `${name}.ext`,
      '-out',
      `${name}.crt`,
    )
  }

  async #openssl(...args: string[]): Promise<void> {
    const child = Bun.spawn(['openssl', ...args], {
      cwd: this.#directory,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const errors = await child.stderr.text()
    if ((await child.exited) !== 0) throw new Error(`openssl ${args.join(' ')}: ${errors}`)
  }
}
