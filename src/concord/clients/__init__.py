"""Where do AI clients keep their settings, and how is our entry written there?"""
