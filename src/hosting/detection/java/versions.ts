import type { SourceDirectory } from '../source.ts'
import { readPin, type ToolNeed } from '../versions.ts'

/** Returns the number by which a version of Java is called: 8 of `1.8`, 17 of `17.0.2`. */
const featureOf = (version: string): number => {
  const [first = 0, second = 0] = version.split(/[._+-]/).map(Number)
  return first === 1 ? second : first
}

/** Returns a need of a JDK that can compile for a version. */
export const compilesFor = (wanted: string, wantedBy: string): ToolNeed => ({
  ...{ name: 'java', wanted, wantedBy, isStrict: true },
  fits: (version) => featureOf(version) >= featureOf(wanted),
})

/** Returns a need of a JDK of one version. */
export const ofVersion = (wanted: string, wantedBy: string, isStrict: boolean): ToolNeed => ({
  ...{ name: 'java', wanted, wantedBy, isStrict },
  fits: (version) => featureOf(version) === featureOf(wanted),
})

/** Returns the version that `.java-version`, `system.properties` or a version manager's file asks for; null if none does. */
export async function pinnedJava(directory: SourceDirectory): Promise<ToolNeed | null> {
  for (const file of ['system.properties', '.sdkmanrc']) {
    const line = /^\s*java(?:\.runtime\.version)?\s*=\s*(\d[\d.]*)/m.exec((await directory.text(file)) ?? '')
    if (line?.[1] !== undefined)
      return ofVersion(line[1], [directory.path, file].filter(Boolean).join('/'), false)
  }
  const pin = await readPin(directory, 'java', { files: ['.java-version'], names: ['java'] })
  return pin === null ? null : ofVersion(pin.wanted ?? '', pin.wantedBy ?? '', false)
}
