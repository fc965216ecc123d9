import { conformance } from './conformance.ts'

await conformance('none', () => {})
