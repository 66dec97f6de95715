// Landlane's hook for opencode. Written by `landlane init`; run that again instead of editing this file.
//
// opencode has no command hooks, so this plugin hands its events to one: JSON on standard input, and on standard
// output nothing, or one of {"deny": text}, {"tell": text}. A tool that writes files runs only after a readable
// answer: a hook that is missing, fails, hangs or babbles refuses. Nothing here writes to the terminal.
import { spawn } from "node:child_process"

const HOOK = ["landlane-hook"]
const LIMIT_MS = 30_000
const GUARDED = new Set([])
const READS = new Set([])
const OWN = "landlane_"
const BROKEN = "Landlane's hook cannot run, so nothing may be changed: run `landlane doctor` in a terminal"

// Runs the hook once, without a shell. Fails unless it ends by itself, in time and well.
const run = (payload) =>
  new Promise((resolve, reject) => {
    const child = spawn(HOOK[0], HOOK.slice(1), { cwd: payload.cwd, stdio: ["pipe", "pipe", "pipe"] })
    let out = ""
    let said = ""
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error(`${BROKEN} (it took longer than ${LIMIT_MS / 1000} s)`))
    }, LIMIT_MS)
    child.on("error", (error) => {
      clearTimeout(timer)
      reject(new Error(`${BROKEN} (${error.message})`))
    })
    child.stdin.on("error", () => {}) // it may answer without reading all
    child.stdout.setEncoding("utf8").on("data", (part) => { out += part })
    child.stderr.setEncoding("utf8").on("data", (part) => { said += part })
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code !== 0) return reject(new Error(said.trim() || `${BROKEN} (it ended with ${code})`))
      try {
        const answer = out.trim() ? JSON.parse(out) : {}
        if (answer === null || typeof answer !== "object" || Array.isArray(answer)) throw new Error("no table")
        resolve(answer)
      } catch {
        reject(new Error(`${BROKEN} (its answer cannot be read)`))
      }
    })
    child.stdin.end(JSON.stringify(payload))
  })

export const Landlane = async ({ client, directory }) => {
  const parents = new Map() // session -> the session it works for, or ""
  const begun = new Map() // session -> the text for its start
  const waiting = new Map() // session -> the text for its next tool result or message

  // A session that this process did not see begin, as after a restart, is asked for.
  const parentOf = async (session) => {
    if (!parents.has(session)) {
      let found
      try {
        found = (await client.session.get({ path: { id: session } })).data
      } catch {}
      parents.set(session, found?.parentID ?? "")
    }
    return parents.get(session)
  }

  const rootOf = async (session) => {
    let root = session
    for (let above = await parentOf(root); above; above = await parentOf(root)) root = above
    return root
  }

  const call = async (name, session, more = {}) => {
    const parent = await parentOf(session)
    const who = parent ? { session_id: await rootOf(session), agent_id: session } : { session_id: session }
    return run({ hook_event_name: name, ...who, cwd: directory, ...more })
  }

  // For events where nothing can be refused: what went wrong there, the next tool call will say.
  const tellOf = async (name, session, more) => {
    try {
      return (await call(name, session, more)).tell ?? ""
    } catch {
      return ""
    }
  }

  const begin = (session, source) => {
    if (!begun.has(session)) begun.set(session, tellOf("session.created", session, { source }))
    return begun.get(session)
  }

  const keep = (session, text) => {
    if (text) waiting.set(session, [...(waiting.get(session) ?? []), text])
  }

  const take = (session) => {
    const texts = waiting.get(session) ?? []
    waiting.delete(session)
    return texts
  }

  return {
    event: async ({ event }) => {
      if (event.type === "session.created") {
        const info = event.properties?.info
        if (!info?.id) return
        parents.set(info.id, info.parentID ?? "")
        await begin(info.id, "startup")
      } else if (event.type === "session.idle") {
        const session = event.properties?.sessionID
        if (session) keep(session, await tellOf("session.idle", session))
      } else if (event.type === "session.deleted") {
        const session = event.properties?.info?.id
        if (session) await tellOf("session.deleted", session)
      }
    },

    "chat.message": async (input, output) => {
      await begin(input.sessionID, "resume")
      keep(input.sessionID, await tellOf("chat.message", input.sessionID))
      const last = output?.parts?.findLast((part) => part.type === "text")
      const text = last ? take(input.sessionID).join("\n\n") : ""
      // A part of its own, so that the model hears it and the user's words stay theirs.
      if (text) output.parts.push({ ...last, id: `${last.id}z`, text, synthetic: true })
    },

    // Asked before every request to the model, so the text added here stays in the conversation.
    "experimental.chat.system.transform": async (input, output) => {
      const text = input.sessionID ? await begin(input.sessionID, "resume") : ""
      if (text) output.system.push(text)
    },

    "tool.execute.before": async (input, output) => {
      const facts = { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID }
      // Our MCP server sees only the content of a call; the hook reports whose call it is. What is read is noted
      // before, so that an edit of an outdated version is known.
      const noted = READS.has(input.tool) || input.tool.startsWith(OWN)
      if (noted) keep(input.sessionID, await tellOf("tool.execute.before", input.sessionID, facts))
      if (!GUARDED.has(input.tool)) return
      const answer = await call("tool.execute.before", input.sessionID, facts)
      if (answer.deny !== undefined) throw new Error(String(answer.deny) || "Landlane refuses this")
      keep(input.sessionID, answer.tell)
    },

    "tool.execute.after": async (input, output) => {
      const facts = { tool_name: input.tool, tool_input: input.args, tool_use_id: input.callID }
      const text = await tellOf("tool.execute.after", input.sessionID, facts)
      const texts = [...take(input.sessionID), ...(text ? [text] : [])].join("\n\n")
      if (!texts || !output) return
      if (Array.isArray(output.content)) output.content.push({ type: "text", text: texts })
      else output.output = output.output ? `${output.output}\n\n${texts}` : texts
    },
  }
}
