extension Settings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Nothing of the values: among them are the master key and connection strings, and whatever holds settings may be
    /// described in a log.
    var description: String { "Settings" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}
