/**
 * Process entry. Inside a sandbox the same executable is sandboxd or the launcher, which every
 * running server pays for: nothing else is loaded before the choice. No top-level await: bytecode forbids it.
 */
function main(argv: string[]): Promise<void> {
  if (argv[2] === '__sandboxd')
    return import('./compute/sandboxd/sandboxd.ts').then(({ runSandboxd }) => runSandboxd(argv.slice(3)))
  if (argv[2] === '__sandboxd-connect')
    return import('./compute/sandboxd/carrier.ts').then(({ runCarrier }) => runCarrier(argv.slice(3)))
  if (argv[2] === '__landlock')
    return import('./compute/landlock/launcher.ts').then(({ runLauncher }) => runLauncher())
  return import('./cli/index.ts').then(({ runCommandLine }) => runCommandLine(argv.slice(2)))
}

main(process.argv).catch((error: unknown) => {
  console.error(error)
  process.exit(1)
})
