import Tracking

/// The limits that the server imposes on its callers.
struct ServerLimits: Sendable {
    /// The largest request body, in bytes. Receipts with long histories reach about 100 kB.
    var bodyBytesMax = 8 * 1024 * 1024
    /// How long a whole body may take to arrive, in seconds.
    var bodySecondsMax = 60.0
    /// The limits of one upload.
    var submission = SubmissionLimits()
    /// How long an upload waits before Apple is asked again, in seconds: about a purchase that its answer lacks, and when
    /// it had a temporary problem.
    var absentSeconds: Double = 5
    /// How long the sender of a purchase waits at the most, in seconds.
    var purchaseSeconds: Double = 20
    /// How long a connection may be silent between requests or while its headers arrive, in seconds.
    var idleSeconds: Int64 = 60
    /// The largest single header or request line, in bytes. An id of 10 kB in any script, percent-encoded, still fits
    /// and so gets its proper problem.
    var headerBytesMax = 32 * 1024
    /// The largest total of a request's headers, in bytes.
    var headerListBytesMax = 48 * 1024
    /// The most headers of a request.
    var headerFieldsMax = 100
    /// The most open connections. Further ones wait until one ends.
    var connectionsMax = connectionsWanted

    /// The reverse proxies that say whose requests they pass on, for limits of an address.
    var trustedProxies = TrustedProxies()

    /// How long the sender of an upload waits at the most, in seconds.
    func waitSeconds(for purpose: UploadPurpose) -> Double {
        switch purpose {
        case .purchase: purchaseSeconds
        case .launch, .restore: submission.answerSeconds
        }
    }

    /// The number of connections that one process wants, where the system allows it.
    static let connectionsWanted = 4096
}
