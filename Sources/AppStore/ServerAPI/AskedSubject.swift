/// The app and environment that were asked about, with which what Apple answers is compared.
struct AskedSubject: Sendable {
    let bundleID: String
    let environment: Endpoint
    /// Apple's number of the app; nil: not compared. Only production names it.
    let appleAppID: Int64?

    /// Returns a sentence where a subject is named and is another one.
    func difference(_ bundleID: String?, _ environment: String?, _ appleAppID: Int64? = nil) -> String? {
        if let bundleID, bundleID != self.bundleID {
            return "The app asked about is \(self.bundleID), the answer is for another one."
        }
        if let environment, environment != self.environment.rawValue {
            return "The environment asked is \(self.environment.rawValue), the answer is from another one."
        }
        if let appleAppID, let expected = self.appleAppID, appleAppID != expected, self.environment == .production {
            return "Apple's number of the app is \(appleAppID), not \(expected); correct it with `perennial app set`."
        }
        return nil
    }
}
