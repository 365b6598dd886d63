import Foundation

/// An indented block of a document with commands for a shell.
struct CommandBlock: CustomStringConvertible {
    let document: String
    /// The number of its first line.
    let line: Int
    let text: String

    var description: String { "\(document):\(line)" }

    /// A block is one of commands if its first line begins with a program, a variable, or a crontab's time.
    nonisolated(unsafe) private static let beginning =
        /^(perennial|curl|psql|swift|sudo|docker|zcat|pg_dump|export|\.|[\w.]+\/[-\w\/]+|[A-Z_]+=\S+|key=\S+|\*\/5)( |$)/

    /// The documents whose blocks count.
    static var documents: [String] {
        get throws {
            let docs = try FileManager.default.contentsOfDirectory(
                atPath: ComposeFile.root.appending(path: "docs").path)
            return ["README.md", "CONTRIBUTING.md", "sql/README.md"]
                + docs.filter { $0.hasSuffix(".md") }.sorted().map { "docs/\($0)" }
        }
    }

    /// Every block of commands of a document, in order.
    static func all(in document: String) throws -> [CommandBlock] {
        let text = try String(contentsOf: ComposeFile.root.appending(path: document), encoding: .utf8)
        var (blocks, lines): ([CommandBlock], [String]) = ([], [])
        var begin = 0
        for (number, line) in text.components(separatedBy: "\n").enumerated() {
            if line.hasPrefix("    "), !lines.isEmpty || line.trimmingCharacters(in: .whitespaces) != "" {
                if lines.isEmpty { begin = number + 1 }
                lines.append(String(line.dropFirst(4)))
            } else if !lines.isEmpty {
                blocks.append(CommandBlock(document: document, line: begin, text: lines.joined(separator: "\n")))
                lines = []
            }
        }
        return blocks.filter { $0.text.firstMatch(of: beginning) != nil }
    }

    /// Why the block is not run; nil where it is.
    var exclusion: Exclusion? {
        Exclusion.all.first { $0.document == document && text.hasPrefix($0.beginning) }
    }

    /// The words of each call of `perennial` in the block, without what the shell does with them.
    var calls: [[String]] {
        text.replacing("\\\n", with: " ").split(separator: "\n").flatMap { line -> [[String]] in
            ShellWords.commands(in: String(line)).compactMap { words in
                guard let program = words.firstIndex(where: { $0 == "perennial" || $0 == "perennialctl" }),
                    words[..<program].allSatisfy({ $0.contains("=") || $0.contains("*") || $0 == "sudo" })
                else { return nil }
                return Array(words[(program + 1)...])
            }
        }
    }
}

/// The words of a line as a shell reads them, as far as documents need it.
enum ShellWords {
    /// Returns the words of each command of a pipeline, without redirections and the comment.
    static func commands(in line: String) -> [[String]] {
        var (commands, word, quote): ([[String]], String?, Character?) = ([[]], nil, nil)
        var isRedirected = false
        func end() {
            if let word, !isRedirected { commands[commands.count - 1].append(word) }
            if word != nil { isRedirected = false }
            word = nil
        }
        for character in line {
            switch character {
            case quote: quote = nil
            case _ where quote != nil: word = (word ?? "") + String(character)
            case "'", "\"": (quote, word) = (character, word ?? "")
            case " ": end()
            case "#" where word == nil: return commands
            case "|":
                end()
                commands.append([])
            case ">", "<":
                end()
                isRedirected = true
            default: word = (word ?? "") + String(character)
            }
        }
        end()
        return commands
    }
}
