"""Where are things kept?"""
