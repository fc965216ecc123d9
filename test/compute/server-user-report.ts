import { isolationOf } from './server-user.ts'

// Starts a server in a data folder, and prints what the kernel takes its user for and what its command wrote.
const [, , dataDir = '', path = ''] = process.argv
console.log(JSON.stringify(await isolationOf(dataDir, path)))
