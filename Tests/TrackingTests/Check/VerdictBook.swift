import Foundation

/// A file of goldens: blocks parted by empty lines, each the name of an answer and what it means.
struct VerdictBook {
    /// Set to 1 to write the goldens anew instead of comparing them; read every difference before committing it.
    static let writeVariable = "PERENNIAL_WRITE_GOLDENS"

    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fixtures")

    /// Where it lies.
    let file: URL

    /// A book of the fixtures' folder.
    init(_ name: String) {
        file = Self.folder.appending(path: name)
    }

    /// Its blocks by the name of the answer.
    func blocks() throws -> [String: String] {
        let text = try String(contentsOf: file, encoding: .utf8)
        let blocks = text.split(separator: "\n\n").map { $0.trimmingCharacters(in: .newlines) }
        return Dictionary(blocks.map { ($0.prefix { $0 != "\n" }.description, $0) }) { _, last in last }
    }

    /// What differs from the golden: a readable piece for each answer, in order of name. Where the environment asks for
    /// it, this writes the present blocks instead, and says so.
    func differences(from reported: [String: String]) throws -> [String] {
        guard ProcessInfo.processInfo.environment[Self.writeVariable] != "1" else {
            let text = reported.sorted { $0.key < $1.key }.map(\.value).joined(separator: "\n\n") + "\n"
            try Data(text.utf8).write(to: file)
            return ["\(file.lastPathComponent) was written anew, because \(Self.writeVariable) is 1"]
        }
        let known = try blocks()
        return Set(known.keys).union(reported.keys).sorted().compactMap { name in
            guard let old = known[name] else { return "\(name) has no golden; now it is:\n\(reported[name] ?? "")" }
            guard let new = reported[name] else { return "\(name) has a golden, but there is no such answer" }
            return old == new ? nil : Self.difference(old, new)
        }
    }

    /// All lines of both, `-` before those of the golden alone and `+` before those that are new.
    static func difference(_ golden: String, _ reported: String) -> String {
        let (old, new) = (golden.split(separator: "\n"), reported.split(separator: "\n"))
        var (removed, inserted): (Set<Int>, Set<Int>) = ([], [])
        for change in new.difference(from: old) {
            switch change {
            case .remove(let offset, _, _): removed.insert(offset)
            case .insert(let offset, _, _): inserted.insert(offset)
            }
        }
        var lines: [String] = []
        var place = 0
        for (index, line) in old.enumerated() {
            if removed.contains(index) {
                lines.append("-\(line)")
                continue
            }
            while inserted.contains(place) {
                lines.append("+\(new[place])")
                place += 1
            }
            lines.append(" \(line)")
            place += 1
        }
        return (lines + new[place...].map { "+\($0)" }).joined(separator: "\n")
    }
}
