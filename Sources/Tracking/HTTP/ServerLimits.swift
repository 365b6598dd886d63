/// What the server puts up with from its callers.
struct ServerLimits: Sendable {
    /// The largest request body; receipts with long histories reach about 100 kB.
    var bodyBytesMax = 8 * 1024 * 1024
    /// How long a whole body may take to arrive.
    var bodySecondsMax = 60.0
    /// What one upload may take.
    var submission = SubmissionLimits()
    /// How long a connection may be silent between requests, or while its headers arrive.
    var idleSeconds: Int64 = 60
    /// The largest single header, and the request line: an id of 10 kB in any script, percent-encoded, gets its problem.
    var headerBytesMax = 32 * 1024
    /// All headers of a request together.
    var headerListBytesMax = 48 * 1024
    /// How many headers a request may have.
    var headerFieldsMax = 100
    /// What the kernel keeps of answers that a caller does not read, doubled by Linux; without it, some MiB.
    var sendBufferBytes = 256 * 1024
    /// How long a caller may leave what is more than that unread.
    var unreadSecondsMax: Int64 = 60
    /// Open connections; where there are as many, the one that is silent longest makes room for a new one.
    var connectionsMax = connectionsWanted

    /// As many connections as one process is to have, where the system lets it.
    static let connectionsWanted = 4096
    /// Connections beyond that for the moment in which one closes for another.
    static let connectionsClosingMax = 32
}
