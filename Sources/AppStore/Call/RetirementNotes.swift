import NIOHTTP1
import Synchronization

/// Reports Apple's announcement that the endpoint will end (headers in the style of RFC 8594), once per value.
final class RetirementNotes: Sendable {
    /// The most different values that are remembered; more would be noise.
    static let valuesMax = 32

    private let note: @Sendable (String) -> Void
    private let seen = Mutex<Set<String>>([])

    init(note: @escaping @Sendable (String) -> Void) {
        self.note = note
    }

    /// Looks for `Sunset` and `Deprecation` among the response headers.
    func look(at headers: HTTPHeaders, from environment: Endpoint, hiding secrets: Secrets) {
        for name in ["Sunset", "Deprecation"] {
            for value in headers[name] {
                let shown = secrets.hidden(in: value.printable(charactersMax: 200))
                let sentence =
                    "Apple's \(environment.rawValue) endpoint announces its end with the header \(name): \(shown). "
                    + "Plan the move away from verifyReceipt."
                if isNew("\(name): \(shown)") { note(sentence) }
            }
        }
    }

    private func isNew(_ announcement: String) -> Bool {
        seen.withLock { $0.count < Self.valuesMax && $0.insert(announcement).inserted }
    }
}
