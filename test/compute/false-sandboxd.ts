/** A sandboxd that was taken over: it sends these bytes, and goes on living. */
export class FalseSandboxd implements AsyncDisposable {
  readonly process: Bun.Subprocess
  readonly fd: number

  constructor(frames: Uint8Array[]) {
    this.process = Bun.spawn(['sh', '-c', 'head -c 9 <&3 >/dev/null; cat >&3; exec sleep 300'], {
      stdio: [new Blob(frames as Uint8Array<ArrayBuffer>[]), 'ignore', 'inherit', 'pipe'],
    })
    this.fd = this.process.stdio[3] as unknown as number
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill('SIGKILL')
    await this.process.exited
  }
}
