import ArgumentParser
import Subscriptions
import Tracking

/// `perennial explain`
struct ExplainCommand: AsyncParsableCommand {
    /// The most bytes of one answer of Apple.
    static let bytesMax = 64 << 20

    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Says what one verifyReceipt answer means, without database or network.",
        discussion: """
            Reads one response body of Apple. Any body gets an answer: what cannot be read is indeterminate. The JSON
            form is stable.

            Examples:
              perennial explain --response answer.json
              perennial explain --response - --bundle-id com.example.app --at 2026-01-31T12:00:00Z --format json
              perennial explain --response new.json --previous old.json
            """)

    /// The forms of an explanation.
    enum Form: String, ExpressibleByArgument, CaseIterable {
        case text
        case json
    }

    @Option(help: ArgumentHelp("The answer's file, or - for standard input.", valueName: "FILE|-"))
    var response: String

    @Option(help: ArgumentHelp("Reject an answer about any other app.", valueName: "B"))
    var bundleId: BundleID?

    @Option(
        help: ArgumentHelp(
            "The moment asked about, in ISO 8601; the answer's request date unless given.", valueName: "T"))
    var at: Instant?

    @Option(help: "text for people, or json, which is stable.")
    var format = Form.text

    @Option(help: ArgumentHelp("An earlier answer: tell what changed since.", valueName: "FILE"))
    var previous: String?

    func validate() throws {
        guard response != "-" || previous != "-" else {
            throw ValidationError("Only one of --response and --previous can be standard input.")
        }
    }

    func run() throws {
        let explanation = Explanation(
            body: try InputFile(response).contents(bytesMax: Self.bytesMax), bundleID: bundleId, at: at,
            previous: try previous.map { try InputFile($0).contents(bytesMax: Self.bytesMax) },
            now: .wallClock)
        switch format {
        case .text: say(explanation.text)
        case .json: say(explanation.json.rendered(pretty: true))
        }
    }
}
