import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Loading } from '../loaded.tsx'
import type { EditorProps } from './editor.tsx'

/** An editor, whose code is loaded when one is first shown. */
export function LazyEditor(props: EditorProps) {
  const [Editor, setEditor] = useState<ComponentType<EditorProps> | null>(null)
  useEffect(() => {
    void import('./editor.tsx').then((module) => setEditor(() => module.Editor))
  }, [])
  return Editor ? <Editor {...props} /> : <Loading />
}
