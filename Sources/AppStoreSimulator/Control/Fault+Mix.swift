/// An error for a list of fault kinds that cannot be read.
package struct UnknownFaultKind: Error, Sendable, CustomStringConvertible {
    /// The problem, in a sentence.
    package let description: String
}

extension Fault {
    /// The faults of Apple and the network on a bad day: temporary statuses, HTTP errors, pages instead of responses,
    /// and responses that are missing, late, dripping or truncated.
    package static let usualKinds =
        "21002=2,21005=2,21009=1,503=2,500=1,429=1,html=1,truncate=1,hang=1,slow=1,drip=1"

    /// Returns faults that hit the share `rate` of all calls together, 0 to 1, divided by weight.
    ///
    /// `kinds` is a list like `21005=3,503=2,hang`: an Apple status, an HTTP code, or one of `html truncate hang slow
    /// drip`, each with a weight that is 1 unless given. `seconds` is how long they hang, wait or drip. Throws
    /// ``UnknownFaultKind`` for any other kind.
    package static func mixed(
        rate: Double, kinds: String = usualKinds, seconds: Double = 5
    ) throws(UnknownFaultKind) -> [Fault] {
        var wanted: [(fault: Fault, weight: Double)] = []
        for entry in kinds.split(separator: ",") {
            let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first, let fault = Fault(named: String(name), seconds: seconds) else {
                throw UnknownFaultKind(description: "There is no fault called \(entry).")
            }
            guard let weight = parts.count == 1 ? 1 : Double(parts[1]), weight > 0, weight.isFinite else {
                throw UnknownFaultKind(description: "The weight in \(entry) is not a number above 0.")
            }
            wanted.append((fault, weight))
        }
        guard !wanted.isEmpty else { throw UnknownFaultKind(description: "No fault is named.") }
        let sum = wanted.reduce(0) { $0 + $1.weight }
        return wanted.map { fault, weight in
            var fault = fault
            fault.share = rate * weight / sum
            return fault
        }
    }

    private init?(named name: String, seconds: Double) {
        switch Int(name) {
        case .some(let status) where (21000...21199).contains(status):
            self.init(.status)
            self.status = status
        case .some(let code) where (400...599).contains(code):
            self.init(.http)
            self.code = code
        case .some: return nil
        case nil:
            guard let kind = Kind(rawValue: name), ![.status, .http, .forged, .foreign].contains(kind) else {
                return nil
            }
            self.init(kind)
            self.seconds = seconds
        }
    }
}
