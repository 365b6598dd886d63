extension Settings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A description without any values: they include the master key and connection strings, and a log may describe a
    /// type that contains settings.
    var description: String { "Settings" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}
