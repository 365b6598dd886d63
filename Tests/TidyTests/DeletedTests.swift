import Testing

/// Only a whole answer of Apple's changes what is known. The mechanisms that let a part of one do so are gone, and so is what
/// existed for them alone.
@Suite("What was deleted stays deleted")
struct DeletedTests {
    /// What deleted mechanisms were called in Swift, SQL and documents: in lower case, without `_` and `-`.
    private static let names: Set<String> = [
        // Coverage of evidence, and joining.
        "evidencecoverage", "evidencehead", "evidencepiece", "unjoined", "suspectedshrink", "shrinkguard",
        // Waiting for a whole answer, and contradictions.
        "awaitswhole", "requirewhole", "readswhole", "iscontradicted", "storedalready", "historygoeson", "nothingnew",
        // The apply stage with its retries, and postponed checks.
        "applynotifications", "appliednotifications", "notificationstoapply", "notificationtoapply", "duenotification",
        "notificationoutcome", "applyat", "postpone", "postponed", "postponement", "postponechecks",
        "postponenotification",
        // Sweeps by trust, with a control group.
        "sweeptrust", "sweepproof", "sweepproofs", "trustedsweep", "trustedsweepfactor", "sweptat",
        "sweepstanding",
        // Catch-up by the history of notifications.
        "catchup", "catchups", "catchupstanding", "notificationhistory", "notificationhistoryclient",
        "notificationshistory",
        // The receipt of version 1 as an upload.
        "versiononefields", "versiononereceipt",
    ]

    /// Two words that named one.
    private static let pairs: Set<String> = ["sweep auto", "control group", "catch up", "notifications history"]

    /// The lines of a text that hold such a name.
    private static func found(in text: String) -> [String] {
        var (found, word, before): ([String], [UInt8], String) = ([], [], "")
        var line = 1
        for byte in Array(text.utf8) + [newline] {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): word.append(byte | 0x20)
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): word.append(byte)
            case UInt8(ascii: "_"), UInt8(ascii: "-"): break
            default:
                if !word.isEmpty {
                    let name = String(decoding: word, as: UTF8.self)
                    if names.contains(name) || pairs.contains("\(before) \(name)") {
                        found.append("line \(line): \(name)")
                    }
                    before = name
                    word = []
                }
                if byte == newline { line += 1 }
            }
        }
        return found
    }

    @Test("No source, statement, document or setting has the name of a deleted mechanism")
    func nothingIsLeft() throws {
        let tree = SourceTree.here
        let files =
            try ["Sources", "sql", "docs", "scripts", "Benchmarks"].flatMap { try tree.files(in: $0, ending: [""]) }
            + ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].compactMap { try tree.file($0) }
        #expect(files.count > 300)
        for file in files where !file.path.contains("/Generated/") {
            let left = Self.found(in: file.text)
            #expect(left.isEmpty, "\(file.path): \(left)")
        }
    }

    @Test(
        "A name that comes back is found",
        arguments: [
            #"case awaitsWhole = "awaits""#, "effect IN ('applied', 'unjoined')", "apply_at timestamptz",
            "-- name: postpone_notification", "CREATE TABLE ledger.sweep_proof (", "perennial app set B --sweep auto",
            "a control group of customers", "ledger.catch_up", "POST /inApps/v1/notifications/history",
            "let fields = VersionOneFields(body)",
        ])
    func isFound(line: String) {
        #expect(Self.found(in: "one line\n\(line)").count == 1, "\(Self.found(in: line))")
    }
}
